"""`shoal run` and `shoal worker` as real processes against a real site, with real signals and real kills."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.command_line import SHOAL, script, shoal
from support.counting_site import PAGES, Site
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRAPER = """
import time
from pydantic import BaseModel
from shoal import Page, Request, Scraper

books = Scraper("books", start=["{url}/"], delay=0.02)

@books.page
def listing(page: Page):
    yield from page.follow("a", to="detail")

@books.page("detail")
def detail(page: Page):
    yield {{"n": int(page.text("h1"))}}

class Cart(BaseModel):
    pages: list[int]

cart = Scraper("cart", input=Cart, delay=0)

@cart.start
def choose(cart: Cart):
    for n in cart.pages:
        yield Request(f"{url}/{{n}}", to="detail")

@cart.page("detail")
def chosen(page: Page):
    yield {{"n": int(page.text("h1"))}}

stuck = Scraper("stuck", start=["{url}/1"], delay=0)

@stuck.page
def never(page: Page):
    while True:
        time.sleep(60)

empty = Scraper("empty")

@empty.page
def title(page: Page):
    yield {{"n": int(page.text("h1"))}}
"""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture(autouse=True)
def folder(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("SHOAL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SCRAPER.format(url=site.url))
    return tmp_path


def begin(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([SHOAL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def children_of(process: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def lives(pid: int) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def numbers(file: str = "out.jsonl") -> list[int]:
    return sorted(json.loads(line)["n"] for line in Path(file).read_text().splitlines())


ALL = list(range(1, PAGES + 1))


def test_a_run_ends_with_a_file_a_summary_and_exit_code_0() -> None:
    answer = script("run", "shop.py:books", "-o", "out.jsonl")
    assert (answer.returncode, answer.stdout) == (0, "")
    assert numbers() == ALL
    assert f"pages     {PAGES + 1}\n" in answer.stderr
    assert f"out.jsonl ({PAGES} items)" in answer.stderr
    assert script("run", "shop.py:books", "--quiet", "-o", "-").stderr == ""


def test_counts_as_json_and_items_on_stdout() -> None:
    counts = json.loads(script("run", "shop.py:books", "--json").stdout)
    assert (counts["completed"], counts["items"], counts["state"]) == (PAGES + 1, PAGES, "finished")
    both = script("run", "shop.py:books", "--json", "-o", "-")
    assert (both.returncode, "choose one" in both.stderr) == (2, True)


def test_dead_letters_give_exit_code_1_and_can_be_tried_again(site: Site) -> None:
    answer = script("run", "shop.py:empty", "--url", f"{site.url}/gone", "--url", f"{site.url}/7", "-o", "out.jsonl")
    assert answer.returncode == 1
    assert "see `shoal dead list" in answer.stderr
    assert numbers() == [7]
    run = json.loads(shoal("stats", "last", "--json").stdout)["run_id"]
    assert shoal("dead", "requeue", "last").returncode == 0
    site.forget()
    again = script("run", "shop.py:empty", "--resume", "--run-id", run)
    assert (again.returncode, site.seen.count("/gone")) == (1, 1)


def test_an_interrupted_run_says_how_to_go_on_and_goes_on(site: Site) -> None:
    process = begin("run", "shop.py:books", "-o", "out.jsonl")
    site.wait_for(10)
    process.send_signal(signal.SIGINT)
    code, _, said = end(process)
    assert code == 130
    told = re.search(r"Wrote the (\d+) items so far to out.jsonl.* Go on with: (shoal run .*)\n", said)
    assert told is not None
    assert len(numbers()) == int(told[1]) < PAGES
    run = json.loads(shoal("runs", "--json").stdout)[0]
    assert (run["state"], run["standing"]) == ("running", "interrupted")
    assert told[2] == f"shoal run shop.py:books --resume --run-id {run['run_id']} -o out.jsonl --replace"
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 0\n")
    answer = script(*shlex.split(told[2])[1:])
    assert answer.returncode == 0
    assert "this run keeps those it was started with" in answer.stderr
    assert numbers() == ALL
    assert len([path for path in site.seen if path != "/robots.txt"]) == PAGES + 1, "nothing was fetched twice"
    nothing = script("run", "shop.py:books", "--resume")
    assert (nothing.returncode, "no unfinished run of 'books'" in nothing.stderr) == (2, True)


def test_a_killed_run_goes_on_at_once(site: Site) -> None:
    for _ in range(2):
        process = begin("run", "shop.py:books", *(["--resume"] if site.seen else []))
        site.forget()
        site.wait_for(10)
        process.kill()
        end(process)
    began = time.monotonic()
    assert script("run", "shop.py:books", "--resume", "-o", "out.jsonl").returncode == 0
    assert numbers() == ALL
    assert time.monotonic() - began < 60, "leases of a dead process need not run out"


def test_a_handler_that_never_returns_can_be_interrupted(site: Site) -> None:
    process = begin("run", "shop.py:stuck")
    site.wait_for(2)

    def ended() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    wait_until(ended, "it gives in", again=0.3)
    assert end(process)[0] == 130


def test_several_processes_share_the_work_and_one_that_dies_is_replaced(site: Site) -> None:
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 0.2\n")
    process = begin("run", "shop.py:books", "--workers", "3", "-o", "out.jsonl")
    site.wait_for(5)
    children = children_of(process)
    assert len(children) == 2
    os.kill(children[0], signal.SIGKILL)
    code, _, said = end(process)
    assert "A worker process died (signal SIGKILL); starting another." in said
    assert code == 0
    assert numbers() == ALL
    assert not any(map(lives, children))


def test_processes_do_not_outlive_the_one_that_started_them(site: Site) -> None:
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 2\n")
    process = begin("run", "shop.py:books", "--workers", "2")
    site.wait_for(2)
    children = children_of(process)
    assert len(children) == 1
    process.kill()
    try:
        wait_until(lambda: not any(map(lives, children)), "they end; the work would take them 80 seconds", within=60)
    finally:
        for child in filter(lives, children):
            os.kill(child, signal.SIGKILL)
        end(process)


def test_distributed_mode_enqueues_and_workers_do_the_rest(site: Site) -> None:
    answer = script("run", "shop.py:books", "--mode", "distributed", "--run-id", "shared", "--engine", "sqlite:///x.db")
    assert json.loads(answer.stdout) == {
        "status": "queued",
        "run_id": "shared",
        "enqueued": 1,
        "worker_command": "shoal worker shop.py:books --run-id shared --engine sqlite:///x.db",
    }
    assert site.seen == []
    command = json.loads(answer.stdout)["worker_command"].split()[1:]
    assert script(*command, "--drain").returncode == 0
    assert shoal("export", "shared", "-o", "out.jsonl", "--engine", "sqlite:///x.db").returncode == 0
    assert numbers() == ALL
    again = script(
        "run", "shop.py:books", "--mode", "distributed", "--run-id", "shared", "--resume", "--engine", "sqlite:///x.db"
    )
    assert f"The run shared is finished: {PAGES + 1} pages done, and nothing is left to do." in again.stderr


def test_waiting_for_a_distributed_run(site: Site) -> None:
    Path("shoal.toml").write_text('[scrapers.books]\nmode = "distributed"\n')
    waiting = begin("run", "shop.py:books", "--run-id", "shared", "--wait", "--json", "-o", "out.jsonl")
    worker = begin("worker", "shop.py")
    code, out, _ = end(waiting)
    assert code == 0
    assert json.loads(out)["items"] == PAGES
    worker.terminate()
    code, _, said = end(worker)
    assert code == 0
    assert "Stopping: finishing what is in flight. Press Ctrl-C again to stop at once." in said
    assert numbers() == ALL


def test_urls_come_from_a_file_and_bad_ones_are_named_by_line(site: Site) -> None:
    lines = ["# some pages", "", f"{site.url}/3", "htp://x", f"{site.url}/3", "two words", f"  {site.url}/4  "]
    Path("urls.txt").write_text("\n".join([*lines, *["nonsense"] * 30]))
    answer = script("run", "shop.py:empty", "--urls-file", "urls.txt", "-o", "out.jsonl")
    assert numbers() == [3, 4]
    assert "32 URLs refused:\n  line 4: htp://x: its scheme 'htp' is not http or https\n" in answer.stderr
    assert "  line 6: two words: it contains a space\n" in answer.stderr
    assert "  … and 12 more\n" in answer.stderr
    assert answer.returncode == 0


def test_urls_come_from_standard_input(site: Site) -> None:
    answer = script("run", "shop.py:empty", "--urls-file", "-", "-o", "-", "-q", given=f"\ufeff{site.url}/5\n")
    assert (answer.returncode, answer.stdout) == (0, '{"n":5}\n')


def test_ctrl_c_while_urls_are_still_awaited(site: Site) -> None:
    process = subprocess.Popen(
        [SHOAL, "run", "shop.py:empty", "--urls-file", "-", "--run-id", "mine"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(f"{site.url}/5\n")
    process.stdin.flush()
    while "mine" not in shoal("runs").stdout:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("Go on with: shoal run shop.py:empty --resume --run-id mine --urls-file -\n")


def test_input_as_text_and_as_a_file() -> None:
    assert script("run", "shop.py:cart", "--input", '{"pages": [1, 2]}', "-o", "out.jsonl").returncode == 0
    assert numbers() == [1, 2]
    Path("cart.json").write_text('{"pages": [3]}')
    assert script("run", "shop.py:cart", "--input", "@cart.json", "-o", "out.jsonl", "--append").returncode == 0
    assert numbers() == [1, 2, 3]
    assert script("run", "shop.py:cart", "-a", "pages=4", "-o", "out.jsonl", "--replace").returncode == 0
    assert numbers() == [4]
    refused = script("run", "shop.py:cart", "-a", "pages=5", "-o", "out.jsonl")
    assert (refused.returncode, "'out.jsonl' exists already; say --replace" in refused.stderr) == (2, True)
    assert numbers() == [4], "nothing is lost"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shop.py"], "shop.py has several scrapers (books, cart, stuck, empty); choose one"),
        (["shop.py:empty"], "There is nothing to fetch: 'empty' begins nowhere"),
        (["shop.py:cart"], "Scraper 'cart' needs an input with pages."),
        (["shop.py:cart", "--input", '{"pages": "x"}'], "The input of 'cart' is wrong: the field 'pages'"),
        (["shop.py:cart", "--input", "{"], "The input of 'cart' is wrong"),
        (["shop.py:cart", "--input", "@none.json"], "The input file 'none.json' cannot be read: No such file"),
        (["shop.py:books", "--input", "{}"], "Scraper 'books' takes no input."),
        (["shop.py:books", "--urls-file", "none.txt"], "There is no file 'none.txt'."),
        (["shop.py:books", "-o", "none/x.csv"], "does not exist; create it first."),
        (["shop.py:books", "--resume"], "There is no unfinished run of 'books' to resume."),
        (["shop.py:books", "--resume", "--run-id", "x"], "There is no run 'x' in this engine."),
        (["shop.py:books", "--engine", "sqlite:///none/x.db"], "Check that its folder exists"),
        (["shop.py:books", "--workers", "0"], "Invalid value for '--workers'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(site: Site, arguments: list[str], words: str) -> None:
    answer = shoal("run", *arguments)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("shoal: ")
    assert answer.stderr.count("\n") == 1
    assert words in answer.stderr
    assert site.seen == []


def test_an_id_is_used_once_and_by_one_scraper() -> None:
    assert script("run", "shop.py:books", "--run-id", "mine").returncode == 0
    assert "add --resume to go on with it" in script("run", "shop.py:books", "--run-id", "mine").stderr
    other = script("run", "shop.py:empty", "--run-id", "mine", "--resume")
    assert "is one of the scraper 'books', not of 'empty'" in other.stderr
    assert script("run", "shop.py:books", "--run-id", "mine", "--resume", "-o", "out.jsonl").returncode == 0
    assert numbers() == ALL, "a finished run can be resumed: there is nothing left to do but to write the items"


def test_settings_reach_the_run_and_the_user_agent(site: Site) -> None:
    Path("shoal.toml").write_text('contact = "me@example.org"\n[scrapers.books]\nmax_depth = 0\n')
    assert script("run", "shop.py:books").returncode == 0
    assert site.agents == {"Shoal/0.1.0 (+mailto:me@example.org)"}
    assert [path for path in site.seen if path != "/robots.txt"] == ["/"]


def test_several_outputs_are_all_written() -> None:
    answer = script("run", "shop.py:books", "-o", "out.jsonl", "-o", "out.csv")
    assert (answer.returncode, f"out.jsonl and out.csv ({PAGES} items)" in answer.stderr) == (0, True)
    assert numbers() == ALL
    assert Path("out.csv").read_text().count("\n") == PAGES + 1
    twice = script("run", "shop.py:books", "-o", "out.jsonl", "-o", "./out.jsonl", "--replace")
    assert (twice.returncode, "'./out.jsonl' is given twice" in twice.stderr) == (2, True)


def test_a_run_that_was_killed_before_its_export_can_be_resumed_for_it(site: Site) -> None:
    assert script("run", "shop.py:books").returncode == 0
    site.forget()
    answer = script("run", "shop.py:books", "--resume", "-o", "out.jsonl")
    assert (answer.returncode, site.seen) == (0, [])
    assert "is finished: 41 pages done, and nothing is left to do." in answer.stderr
    assert numbers() == ALL


def test_the_hint_to_resume_has_all_that_is_needed(site: Site, tmp_path: Path) -> None:
    Path("other.toml").write_text("[scrapers.books]\ndelay = 0.2\n")
    options = ["-o", "out.jsonl", "-o", "a b.csv", "--workers", "2", "--concurrency", "3", "--once"]
    process = begin("run", "shop.py:books", *options, "--engine", "sqlite:///x.db", "--config", "other.toml")
    site.wait_for(4)
    process.send_signal(signal.SIGINT)
    said = end(process)[2]
    command = shlex.split(said.rpartition("Go on with: ")[2])
    (run,) = json.loads(shoal("runs", "--json", "--engine", "sqlite:///x.db").stdout)
    assert command[:6] == ["shoal", "run", "shop.py:books", "--resume", "--run-id", run["run_id"]]
    assert command[6:] == [
        *options[:4],
        "--replace",
        *options[4:],
        "--config",
        "other.toml",
        "--engine",
        "sqlite:///x.db",
    ]
    stats = shoal("stats", "last", "--engine", "sqlite:///x.db")
    assert "  interrupted\n" in stats.stdout
    assert stats.stderr.endswith(f"shoal run TARGET --resume --run-id {run['run_id']} --engine sqlite:///x.db\n")


def test_no_longer_following_a_run_says_how_to_come_back() -> None:
    process = begin("run", "shop.py:books", "--mode", "distributed", "--run-id", "mine", "--wait", "-o", "out.jsonl")
    wait_until(lambda: "mine" in shoal("runs").stdout, "it is filled")
    wait_until(lambda: "waiting for workers" in shoal("runs").stdout, "it is handed over")
    process.send_signal(signal.SIGINT)
    code, _, said = end(process)
    assert code == 130
    how = "shoal run shop.py:books --resume --run-id mine -o out.jsonl --mode distributed --wait"
    assert said.endswith(f"which its workers go on with. Follow it with: {how}\n")


@pytest.mark.parametrize("run_id", ["", "last", "bad id!", "-x", "a/b", "x" * 129])
def test_what_a_run_cannot_be_called(site: Site, run_id: str) -> None:
    answer = shoal("run", "shop.py:books", f"--run-id={run_id}")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert answer.stderr.startswith(f"shoal: A run cannot be called {run_id!r}: ")
    assert site.seen == []


def test_a_start_page_that_gives_nothing_is_named(site: Site) -> None:
    Path("none.py").write_text(
        f"from shoal import Scraper\nnone = Scraper('none', start=['{site.url}/'])\n"
        "@none.page\ndef read(page):\n    yield from page.follow('article a')\n"
    )
    answer = script("run", "none.py", "--quiet")
    assert answer.returncode == 0
    assert answer.stderr.startswith(f"shoal: The start page {site.url}/ (HTTP 200, ")
    assert "gave neither an item nor a link." in answer.stderr
    assert "neither an item" not in script("run", "shop.py:books", "--quiet").stderr


def test_downloads_do_not_keep_a_run_from_its_end(site: Site) -> None:
    Path("files.py").write_text(
        f"from shoal import Scraper\nfiles = Scraper('files', start=['{site.url}/'])\n"
        "@files.page\ndef read(page):\n    yield {'n': 0}\n    yield from page.download('a')\n"
    )
    answer = script("run", "files.py")
    assert answer.returncode == 0
    assert answer.stderr.count("lane.unstaffed") == 1
    assert "refused   40  (downloads: file workers are not part of this version yet)" in answer.stderr
    assert json.loads(shoal("runs", "--json").stdout)[0]["state"] == "finished"


@pytest.mark.parametrize("command", ["run", "worker", "serve"])
def test_a_scraper_for_browsers_is_refused_at_the_start(command: str) -> None:
    Path("seen.py").write_text(
        "from shoal import Scraper\nseen = Scraper('seen', start=['http://127.0.0.1:9/'], browser=True)\n"
        "@seen.page\ndef read(page):\n    return None\n"
    )
    answer = shoal(command, "seen.py")
    sentence = (
        "The scraper 'seen' has its pages in the lane 'browser': browser workers are not part of this version yet."
    )
    assert (answer.returncode, answer.stderr) == (2, f"shoal: {sentence}\n")


def test_refused_and_dropped_say_why(site: Site) -> None:
    Path("why.py").write_text(
        "from shoal import Drop, Scraper\n"
        f"why = Scraper('why', start=['{site.url}/'], delay=0, max_depth=1, allow=['127.0.0.1'])\n"
        "@why.page\ndef read(page):\n"
        "    yield from page.follow_url(['/1', '/2', 'https://elsewhere.example/'])\n"
        "    if page.depth:\n        yield from page.follow_url(['/3'])\n"
        "    if page.url.endswith('2'):\n        raise Drop('not wanted')\n"
    )
    said = script("run", "why.py").stderr
    assert "dropped   1  (by the handler)" in said
    assert "deeper than max_depth" in said
    assert "outside of allow" in said
