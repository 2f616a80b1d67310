"""Pools of exits in settings and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.config.load import load
from shoal.config.pools import pools_from
from shoal.errors import BadSettings
from shoal.frontier.contract.exits import NewExit


def settings(folder: Path, text: str) -> Path:
    file = folder / "shoal.toml"
    file.write_text(text)
    return file


def test_without_a_word_requests_leave_directly(tmp_path: Path) -> None:
    assert pools_from(load(settings(tmp_path, ""))) == {
        "direct": NewExit("direct", "direct", ("default",)),
        "tor": NewExit("tor", "tor", ("tor",)),
    }


def test_tor_is_a_way_out_of_any_pool_and_its_own_pool_can_be_another(tmp_path: Path) -> None:
    exits = pools_from(load(settings(tmp_path, '[exits.shops]\nways = ["tor", "direct"]\ncap = 5')))
    assert exits["tor"] == NewExit("tor", "tor", ("tor", "shops"), 5)
    exits = pools_from(load(settings(tmp_path, '[exits.tor]\nways = ["socks5://127.0.0.1:9050"]')))
    assert "tor" not in exits
    assert exits["127.0.0.1:9050"].pools == ("tor",)


def test_pools_of_ways_and_files(tmp_path: Path) -> None:
    proxies = tmp_path / "proxies.txt"
    proxies.write_text("# bought in May\n\nsocks5://p2:1080\n  http://me:secret@p1:8080  \n")
    text = f"""
[exits.default]
ways = ["direct", "http://me:secret@p1:8080"]
cap = 8
[exits.shops]
file = "{proxies}"
cap = 4
"""
    loaded = load(settings(tmp_path, text))
    exits = pools_from(loaded)
    proxy = next(name for name in exits if name.startswith("p1"))
    assert exits == {
        "direct": NewExit("direct", "direct", ("default",), 8),
        proxy: NewExit(proxy, "http://me:secret@p1:8080", ("default", "shops"), 4),
        "p2:1080": NewExit("p2:1080", "socks5://p2:1080", ("shops",), 4),
        "tor": NewExit("tor", "tor", ("tor",)),
    }
    assert "secret" not in repr(loaded).replace("secret_key", "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[exits.a]\nways = ["http://me:secret@"]', "names no host"),
        ('[exits.a]\nways = ["nonsense"]', "is not an exit"),
        ("[exits.a]\nway = []", "did you mean 'ways'"),
        ("[exits.a]\ncap = -1", "cap"),
        ("[exits.a]\nways = []", "has no exits"),
        ('[exits.a]\nfile = "/no/such/file"', "cannot be read"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadSettings, match=says) as caught:
        pools_from(load(settings(tmp_path, text)))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_file_of_exits_as_editors_write_it(tmp_path: Path, line_end: str) -> None:
    """With a byte order mark, blank lines, comments and the same exit twice."""
    proxies = tmp_path / "proxies.txt"
    lines = ["\ufeffhttp://p1:1", "", "  # more", "http://p1:1", "  http://p2:2  ", ""]
    proxies.write_bytes(line_end.join(lines).encode())
    (tmp_path / "marked.toml").write_bytes(f'\ufeff[exits.default]\nfile = "{proxies}"\n'.encode())
    assert [name for name in pools_from(load(tmp_path / "marked.toml")) if name != "tor"] == ["p1:1", "p2:2"]


def test_a_mistake_in_a_file_names_the_line(tmp_path: Path) -> None:
    proxies = tmp_path / "proxies.txt"
    proxies.write_text("direct\nftp://me:secret@host:1\n")
    with pytest.raises(BadSettings, match=r"proxies.txt, line 2: .*no kind 'ftp'") as caught:
        pools_from(load(settings(tmp_path, f'[exits.a]\nfile = "{proxies}"')))
    assert "secret" not in str(caught.value)
