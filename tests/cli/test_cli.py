"""The command line as its users meet it: the real console script, what it prints, where, and with which exit code."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli.output.exit_codes import framed
from shoal.core.notes import Entry
from shoal.core.outcome import Blame, Dead, Done, Outcome, Reason, Settlement, Snoozed
from shoal.core.task import NewTask, Policy, Task
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.open import open_engine
from shoal.work.task.setbacks import down_key
from support.command_line import SHOAL, script, shoal

pytestmark = pytest.mark.usefixtures("own_folder")


def end_of(task: Task) -> Outcome:
    """Page 3 dies, the others give an item."""
    if task.url.endswith("/3"):
        return Dead(Reason(Blame.URL, "HTTP 404 \x1b[31mred", "GET https://shop.example/3\nscraper books"))
    return Done(items=(b'{"n":%d,"tags":["a"]}' % int(task.url[-1]),), url=task.url)


async def fill(run_id: str, *, pages: int = 3, work: bool = True) -> None:
    """A run of `books` in shoal.db, of `pages` tasks on as many sites; worked to its end if asked for."""
    engine = await open_engine("sqlite:///shoal.db")
    worker = WorkerInfo("w", "elsewhere", 1, 1)
    try:
        await engine.frontier.create_run(NewRun(run_id, "books", Policy(delay=0)))
        tasks = [
            NewTask(f"https://shop{n}.example/{n}", f"shop{n}.example", bytes([n]) * 32) for n in range(1, pages + 1)
        ]
        await engine.frontier.enqueue(run_id, tasks)
        await engine.frontier.seal_run(run_id)
        if not work:
            return
        granted = await engine.frontier.exchange(Ask(worker, ["books"], ["bulk"], {"default": ["direct"]}, pages))
        ends = [
            Settlement(run_id, lease.task.id, lease.token, end_of(lease.task), lease.claimed_at, 1, 1500)
            for lease in granted.leases
        ]
        await engine.frontier.exchange(Ask(worker, ["books"], ["bulk"], {}, 0, settlements=ends))
    finally:
        await engine.close()


@pytest.fixture
def worked() -> str:
    """A finished run with two items and one dead letter."""
    asyncio.run(fill("books-1"))
    return "books-1"


# The frame


def test_version_and_help_by_both_entries() -> None:
    assert script("--version").stdout == "shoal 0.1.0\n"
    module = subprocess.run([sys.executable, "-m", "shoal", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == "shoal 0.1.0\n"
    answer = script("run", "--help")
    assert answer.returncode == 0
    assert "shoal run books.py -o books.jsonl" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rnu"], "shoal: No such command 'rnu'. Did you mean 'run'?"),
        (["runs", "--jsn"], "shoal: No such option: --jsn"),
        (["run"], "shoal: Missing argument 'TARGET'."),
        (["run", "nowhere.py"], "shoal: There is no file 'nowhere.py'."),
        (["runs", "--engine", "mysql://u:secret@h/x"], "shoal: There is no engine 'mysql'."),
        (["runs", "--engine", "shoal.db"], "shoal: command line (--engine): engine = 'shoal.db' cannot be used"),
        (["runs", "--config", "other.toml"], "shoal: There is no settings file 'other.toml'."),
        (["stats", "last"], "shoal: No runs yet. Start one with `shoal run file.py`."),
        (["export", "last", "-o", "x.xlsx"], "shoal: The output 'x.xlsx' has no known suffix"),
    ],
)
def test_a_mistake_gives_one_sentence_on_stderr_and_exit_code_2(arguments: list[str], sentence: str) -> None:
    answer = script(*arguments)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith(sentence)
    assert answer.stderr.count("\n") == 1
    assert "secret" not in answer.stderr


def test_a_broken_engine_is_one_sentence(own_folder: Path) -> None:
    (own_folder / "shoal.db").write_bytes(b"not a database at all" * 100)
    answer = shoal("runs")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "shoal.db is not a SQLite file" in answer.stderr


def test_an_unexpected_error_says_what_to_report(capsys: pytest.CaptureFixture[str]) -> None:
    def command(**_: object) -> None:
        raise ZeroDivisionError("oh")

    assert framed(command, []) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "ZeroDivisionError: oh" in said
    assert "--debug" in said
    assert framed(command, ["--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_debug_may_stand_anywhere() -> None:
    assert "Traceback" in shoal("stats", "last", "--debug").stderr
    assert "Traceback" in shoal("--debug", "stats", "last").stderr
    assert "Traceback" not in shoal("stats", "last").stderr


def test_a_closed_pipe_is_quiet() -> None:
    asyncio.run(fill("books-1", pages=9))
    pipeline = f"{SHOAL} items last --json | head -c 1; {SHOAL} items last --json >&-"
    answer = subprocess.run(["sh", "-c", pipeline], capture_output=True, text=True, check=False)
    assert answer.stdout == "{"
    assert "Traceback" not in answer.stderr
    assert "BrokenPipe" not in answer.stderr


# Looking at runs


def test_no_runs_yet() -> None:
    answer = shoal("runs")
    assert (answer.returncode, answer.stdout) == (0, "")
    assert answer.stderr == "No runs yet. Start one with `shoal run file.py`.\n"
    assert json.loads(shoal("runs", "--json").stdout) == []
    assert not Path("shoal.db").exists(), "looking does not create"


def test_runs_and_stats(worked: str) -> None:
    listing = shoal("runs").stdout.splitlines()
    assert listing[0].split() == ["RUN", "SCRAPER", "STATE", "STARTED", "DONE", "ITEMS", "WAITING", "DEAD"]
    assert listing[1].split()[:3] == ["books-1", "books", "finished"]
    numbers = json.loads(shoal("stats", "last", "--json").stdout)
    expected = {"pending": 0, "claimed": 0, "completed": 2, "failed": 1, "remaining": 0, "items": 2, "requests": 3}
    assert {name: numbers[name] for name in expected} == expected
    text = shoal("stats", worked).stdout
    assert "see `shoal dead list books-1`" in text
    assert "4.5 kB in 3 requests" in text


def test_a_run_is_found_by_its_beginning_if_only_one_has_it(worked: str) -> None:
    asyncio.run(fill("books-2"))
    assert json.loads(shoal("stats", "last", "--json").stdout)["run_id"] == "books-2"
    assert json.loads(shoal("stats", worked, "--json").stdout)["run_id"] == "books-1"
    several = shoal("stats", "book")
    assert several.returncode == 2
    assert "is the beginning of 2 runs (books-2, books-1)" in several.stderr
    assert "There is no run 'films'" in shoal("stats", "films").stderr


def test_pause_resume_cancel() -> None:
    asyncio.run(fill("books-1", work=False))

    def state() -> object:
        return json.loads(shoal("stats", "last", "--json").stdout)["state"]

    assert shoal("pause", "last").returncode == 0
    assert state() == "paused"
    assert shoal("resume", "last").returncode == 0
    assert state() == "running"
    assert "is running, not paused" in shoal("resume", "last").stderr
    assert shoal("cancel", "last").returncode == 0
    assert state() == "cancelled"
    for command in ("cancel", "pause", "resume"):
        answer = shoal(command, "last")
        assert answer.returncode == 2
        assert "is cancelled" in answer.stderr


def test_sites() -> None:
    assert shoal("sites").stderr.startswith("No site has work waiting.")
    asyncio.run(fill("books-1", work=False))
    sites = json.loads(shoal("sites", "--json").stdout)
    assert {site["site"] for site in sites} == {"shop1.example", "shop2.example", "shop3.example"}
    assert "shop1.example" in shoal("sites").stdout


# Dead letters


def test_dead_letters_are_listed_shown_requeued_and_purged(worked: str) -> None:
    listing = shoal("dead", "list", "last")
    assert "HTTP 404 ·[31mred" in listing.stdout, "what strangers wrote cannot steer the terminal"
    letter = json.loads(shoal("dead", "list", "last", "--json").stdout)[0]
    assert (letter["url"], letter["blame"]) == ("https://shop3.example/3", "url")
    shown = shoal("dead", "show", worked, str(letter["task"])).stdout
    assert "          scraper books\n" in shown
    assert shoal("dead", "show", worked, "99999").returncode == 2
    refused = shoal("dead", "purge", worked)
    assert (refused.returncode, "add --yes" in refused.stderr) == (2, True)
    requeued = shoal("dead", "requeue", worked, str(letter["task"]))
    assert "1 dead letter of books-1 wait again. Work on them with `shoal run TARGET --resume" in requeued.stderr
    assert json.loads(shoal("stats", worked, "--json").stdout)["pending"] == 1
    assert "has no dead letters" in shoal("dead", "list", worked).stderr


def test_purged_letters_stay_counted(worked: str) -> None:
    assert "1 dead letter of books-1 forgotten." in shoal("dead", "purge", worked, "--yes").stderr
    assert "1 dead letter purged" in shoal("dead", "list", worked).stderr
    assert json.loads(shoal("stats", worked, "--json").stdout)["failed"] == 1


# Items


def test_items_and_export(worked: str) -> None:
    lines = shoal("items", "last").stdout.splitlines()
    assert sorted(json.loads(line)["n"] for line in lines) == [1, 2]
    assert len(shoal("items", "last", "-n", "1").stdout.splitlines()) == 1
    assert shoal("export", worked, "-o", "x.csv").stderr == "Wrote 2 items to x.csv.\n"
    assert sorted(Path("x.csv").read_text().splitlines()) == ['1,"[""a""]"', '2,"[""a""]"', "n,tags"]
    piped = shoal("export", worked, "-o", "-")
    assert (len(piped.stdout.splitlines()), piped.stderr) == (2, "")


def test_a_run_without_items_says_what_is_left() -> None:
    asyncio.run(fill("books-1", work=False))
    assert shoal("items", "last").stderr == "The run books-1 has no items; 3 tasks remain to be done.\n"
    assert "is not finished; 3 tasks remain." in shoal("export", "last", "-o", "x.jsonl").stderr


# Doctor, sites


def test_doctor_and_a_check_find_source_addresses_that_are_not_here() -> None:
    settings = Path("shoal.toml")
    settings.write_text('[exits.office]\nways = ["source://127.0.0.2", "source://203.0.113.7"]\n')
    answer = shoal("doctor")
    assert answer.returncode == 1
    assert "source://203.0.113.7 (pool office): this machine does not have the address" in answer.stdout
    assert "127.0.0.2" not in answer.stdout
    checked = shoal("exits", "check", "203.0.113.7", "--url", "http://127.0.0.1:9/")
    assert (checked.returncode, "Traceback" in checked.stderr) == (1, False)
    assert "203.0.113.7  NO     this machine does not have the source address" in checked.stdout
    settings.write_text('[exits.office]\nways = ["source://127.0.0.2"]\n')
    assert "1 source address, all here" in shoal("doctor").stdout


def test_doctor_says_what_fails_and_what_to_do(worked: str) -> None:
    assert "readable and writable, 1 run" in shoal("doctor").stdout
    for engine, words in (
        ("sqlite:///missing/x.db", "does not exist"),
        ("sqlite://", "names no file"),
        ("mysql://u:secret@h/x", "There is no engine 'mysql'"),
    ):
        answer = shoal("doctor", "--engine", engine)
        assert answer.returncode == 1
        assert "fail  engine" in answer.stdout
        assert words in answer.stdout
        assert "secret" not in answer.stdout


def test_a_site_that_is_held_back_is_released() -> None:
    asyncio.run(fill("books-1", work=False))
    asyncio.run(_limit("shop1.example"))
    before = {site["site"]: site for site in json.loads(shoal("sites", "--json").stdout)}
    assert before["shop1.example"]["next_at"] > before["shop2.example"]["next_at"]
    answer = shoal("sites", "release", "shop1.example")
    assert (answer.returncode, answer.stderr) == (0, "shop1.example is no longer held back.\n")
    after = {site["site"]: site for site in json.loads(shoal("sites", "--json").stdout)}
    assert after["shop1.example"]["next_at"] < before["shop1.example"]["next_at"]
    unknown = shoal("sites", "release", "nobody.example")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("shoal: No task of the site 'nobody.example' was ever accepted here.")


async def _limit(site: str) -> None:
    """A site has asked for a day, and is known to be down."""
    engine = await open_engine("sqlite:///shoal.db")
    worker = WorkerInfo("w", "elsewhere", 1, 1)
    try:
        granted = await engine.frontier.exchange(Ask(worker, ["books"], ["bulk"], {"default": ["direct"]}, 3))
        day = Snoozed(86_400_000, 1, Reason(Blame.HOST, "rate limited (HTTP 429)"))
        ends = [
            Settlement("books-1", each.task.id, each.token, day if each.task.site == site else Snoozed())
            for each in granted.leases
        ]
        await engine.frontier.exchange(Ask(worker, ["books"], ["bulk"], {}, 0, settlements=ends))
        await engine.cache.put([Entry(down_key((site, "direct")), b"since long", 60_000)])
    finally:
        await engine.close()


@pytest.mark.parametrize(
    "command", [("stats",), ("items",), ("dead", "list"), ("cancel",), ("audit",), ("changes",), ("export", "-o", "-")]
)
def test_an_odd_id_is_one_sentence(worked: str, command: tuple[str, ...]) -> None:
    """What a shell makes of bytes that are no UTF-8; a NUL cannot even be typed."""
    for odd in ("a\udcff", "a\0b"):
        answer = shoal(*command, odd)
        assert answer.returncode == 2, answer
        assert repr(odd) in answer.stderr
        assert answer.stderr.startswith("shoal: There is n"), answer
        assert len(answer.stderr.splitlines()) == 1
