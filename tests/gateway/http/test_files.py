"""Files for browsers: what is in the folder and meant for them, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response

from shoal.gateway.http.files import Files
from support.command_line import shoal


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "page"
    (folder / ".git").mkdir(parents=True)
    (folder / "deep").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "page-of-another").mkdir()
    (tmp_path / "page-of-another" / "index.html").write_text("secret")
    for path in ("index.html", "cart.js", "types.d.ts", "deep/index.html", ".env", ".git/config"):
        (folder / path).write_text(path)
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    return Files(directory=folder, html=True)


async def ask(files: Files, path: str, **more: Any) -> Response:
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/{path.removeprefix('.')}",
        "root_path": "",
        "headers": [],
        **more,
    }
    return await files.get_response(path, scope)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".", "text/html"),
        ("cart.js", "text/javascript"),
        ("types.d.ts", "text/plain"),
        ("deep/", "text/html"),
    ],
)
async def test_what_is_meant_for_browsers(files: Files, path: str, kind: str) -> None:
    answer = await ask(files, path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert answer.headers["cache-control"] == "no-cache"
    tag = answer.headers["etag"]
    again = await ask(files, path, headers=[(b"if-none-match", tag.encode())])
    assert (again.status_code, again.headers["etag"]) == (304, tag)


@pytest.mark.parametrize(
    "path",
    [
        "nothing.html",
        ".env",
        ".git/config",
        "deep/../.env",
        "../secret.txt",
        "deep/../../secret.txt",
        "../page-of-another/index.html",
        "/etc/passwd",
        "out.txt",
        "up/secret.txt",
        "cart.js/more",
        "with\0zero",
        "x" * 5000,
    ],
)
async def test_everything_else_is_not_there(files: Files, path: str) -> None:
    with pytest.raises(HTTPException) as caught:
        await ask(files, path)
    assert caught.value.status_code == 404


async def test_files_are_only_read(files: Files) -> None:
    with pytest.raises(HTTPException) as caught:
        await ask(files, "cart.js", method="POST")
    assert caught.value.status_code == 405


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.py").write_text("from shoal import Scraper\nempty = Scraper('empty')\n")
    answer = shoal("serve", "empty.py", "--static", "nowhere")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "There is no folder 'nowhere'" in answer.stderr
