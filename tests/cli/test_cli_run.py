"""`shoal run` and `shoal worker` against a real site: what goes in, what comes out, and where to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import script, shoal
from support.counting_site import PAGES, Site
from support.shop_file import ALL, SCRAPERS, begin, end, numbers
from support.waiting import wait_until


@pytest.fixture(autouse=True)
def site(counting_site: Site, own_folder: Path) -> Site:
    """The site of the scrapers in `shop.py`, which is in the folder of the test."""
    (own_folder / "shop.py").write_text(SCRAPERS.format(url=counting_site.url, delay=0))
    return counting_site


def test_a_run_ends_with_a_file_a_summary_and_exit_code_0() -> None:
    answer = shoal("run", "shop.py:books", "-o", "out.jsonl")
    assert (answer.returncode, answer.stdout) == (0, "")
    assert numbers() == ALL
    assert f"pages     {PAGES + 1}\n" in answer.stderr
    assert f"out.jsonl ({PAGES} items)" in answer.stderr
    assert shoal("run", "shop.py:books", "--quiet", "-o", "-").stderr == ""


def test_counts_as_json_and_items_on_stdout() -> None:
    counts = json.loads(shoal("run", "shop.py:books", "--json").stdout)
    assert (counts["completed"], counts["items"], counts["state"]) == (PAGES + 1, PAGES, "finished")
    both = shoal("run", "shop.py:books", "--json", "-o", "-")
    assert (both.returncode, "choose one" in both.stderr) == (2, True)


def test_dead_letters_give_exit_code_1_and_can_be_tried_again(site: Site) -> None:
    answer = shoal("run", "shop.py:empty", "--url", f"{site.url}/gone", "--url", f"{site.url}/7", "-o", "out.jsonl")
    assert answer.returncode == 1
    assert "see `shoal dead list" in answer.stderr
    assert numbers() == [7]
    run = json.loads(shoal("stats", "last", "--json").stdout)["run_id"]
    assert shoal("dead", "requeue", "last").returncode == 0
    site.forget()
    again = shoal("run", "shop.py:empty", "--resume", "--run-id", run)
    assert (again.returncode, site.seen.count("/gone")) == (1, 1)


def test_distributed_mode_enqueues_and_workers_do_the_rest(site: Site) -> None:
    answer = shoal("run", "shop.py:books", "--mode", "distributed", "--run-id", "shared", "--engine", "sqlite:///x.db")
    assert json.loads(answer.stdout) == {
        "status": "queued",
        "run_id": "shared",
        "enqueued": 1,
        "worker_command": "shoal worker shop.py:books --run-id shared --engine sqlite:///x.db",
    }
    assert site.seen == []
    command = json.loads(answer.stdout)["worker_command"].split()[1:]
    assert shoal(*command, "--drain").returncode == 0
    assert shoal("export", "shared", "-o", "out.jsonl", "--engine", "sqlite:///x.db").returncode == 0
    assert numbers() == ALL
    again = shoal(
        "run", "shop.py:books", "--mode", "distributed", "--run-id", "shared", "--resume", "--engine", "sqlite:///x.db"
    )
    assert f"The run shared is finished: {PAGES + 1} pages done, and nothing is left to do." in again.stderr


def test_waiting_for_a_distributed_run(site: Site) -> None:
    Path("shoal.toml").write_text('[scrapers.books]\nmode = "distributed"\n')
    waiting = begin("run", "shop.py:books", "--run-id", "shared", "--wait", "--json", "-o", "out.jsonl")
    wait_until(lambda: "waiting for workers" in shoal("runs").stdout, "it is handed over")
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
    answer = shoal("run", "shop.py:empty", "--urls-file", "urls.txt", "-o", "out.jsonl")
    assert numbers() == [3, 4]
    assert "32 URLs refused:\n  line 4: htp://x: its scheme 'htp' is not http or https\n" in answer.stderr
    assert "  line 6: two words: it contains a space\n" in answer.stderr
    assert "  … and 12 more\n" in answer.stderr
    assert answer.returncode == 0


def test_urls_come_from_standard_input(site: Site) -> None:
    answer = script("run", "shop.py:empty", "--urls-file", "-", "-o", "-", "-q", given=f"\ufeff{site.url}/5\n")
    assert (answer.returncode, answer.stdout) == (0, '{"n":5}\n')


def test_input_as_text_and_as_a_file() -> None:
    assert shoal("run", "shop.py:cart", "--input", '{"pages": [1, 2]}', "-o", "out.jsonl").returncode == 0
    assert numbers() == [1, 2]
    Path("cart.json").write_text('{"pages": [3]}')
    assert shoal("run", "shop.py:cart", "--input", "@cart.json", "-o", "out.jsonl", "--append").returncode == 0
    assert numbers() == [1, 2, 3]
    assert shoal("run", "shop.py:cart", "-a", "pages=4", "-o", "out.jsonl", "--replace").returncode == 0
    assert numbers() == [4]
    refused = shoal("run", "shop.py:cart", "-a", "pages=5", "-o", "out.jsonl")
    assert (refused.returncode, "'out.jsonl' exists already; say --replace" in refused.stderr) == (2, True)
    assert numbers() == [4], "nothing is lost"


def test_settings_reach_the_run_and_the_user_agent(site: Site) -> None:
    Path("shoal.toml").write_text('contact = "me@example.org"\n[scrapers.books]\nmax_depth = 0\n')
    assert shoal("run", "shop.py:books").returncode == 0
    assert site.agents == {"Shoal/0.1.0 (+mailto:me@example.org)"}
    assert [path for path in site.seen if path != "/robots.txt"] == ["/"]


def test_several_outputs_are_all_written() -> None:
    answer = shoal("run", "shop.py:books", "-o", "out.jsonl", "-o", "out.csv")
    assert (answer.returncode, f"out.jsonl and out.csv ({PAGES} items)" in answer.stderr) == (0, True)
    assert numbers() == ALL
    assert Path("out.csv").read_text().count("\n") == PAGES + 1
    twice = shoal("run", "shop.py:books", "-o", "out.jsonl", "-o", "./out.jsonl", "--replace")
    assert (twice.returncode, "'./out.jsonl' is given twice" in twice.stderr) == (2, True)
