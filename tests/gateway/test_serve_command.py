"""`shoal serve` and `shoal keys`: several processes, a store that is away, and what cannot be served."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import psutil
import pytest

from support.command_line import shoal
from support.gateway_process import CART, SCRAPERS, Served, served
from support.waiting import wait_until


class TestSeveralProcesses:
    def test_one_that_is_killed_is_replaced_and_nothing_is_lost(self, shop: str, tmp_path: Path) -> None:
        with served(tmp_path, shop, "--processes", "2", "--with-workers") as gateway:
            parent = psutil.Process(gateway.process.pid)

            def gateways() -> list[psutil.Process]:
                return [child for child in parent.children() if "serve" in child.cmdline()]

            def patiently(work: object, *words: object) -> object:
                def worked() -> object:
                    with contextlib.suppress(OSError):
                        return work(*words)  # type: ignore[operator]
                    return None

                return wait_until(worked, "a process answers")

            job_ids = [gateway.submit("/cart", CART) for _ in range(10)]
            statuses = {gateway.ask(f"/results/{job_id}").status for job_id in job_ids for _ in range(3)}
            assert statuses == {200}, "every process knows every job"
            victim = gateways()[0]
            victim.kill()
            job_ids.append(str(patiently(gateway.submit, "/cart", CART)))
            for job_id in job_ids:
                assert patiently(gateway.finished, job_id)["status"] == "complete"  # type: ignore[index]
            wait_until(
                lambda: len(now := gateways()) == 2 and victim.pid not in {each.pid for each in now},
                "the one that was killed is replaced",
            )
            assert b"shoal_gateway_requests_total" in patiently(lambda: gateway.ask("/metrics").raw)  # type: ignore[operator]
            children = parent.children(recursive=True)
            assert gateway.stop() == 0
        _, alive = psutil.wait_procs(children, 60)
        assert not alive


class TestAStoreThatIsAway:
    def test_submissions_hear_of_it_and_it_comes_back_by_itself(self, shop: str, tmp_path: Path) -> None:
        with served(tmp_path, shop) as gateway:
            job_id = gateway.submit("/cart", CART)
            with contextlib.closing(sqlite3.connect(tmp_path / "shoal.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                for _ in range(3):
                    answer = gateway.ask("/cart", CART)
                    assert answer.status == 503, answer.raw
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert int(answer.headers["retry-after"]) >= 1
                assert gateway.ask(f"/results/{job_id}").status == 200, "reading goes on"
                other.execute("ROLLBACK")
            wait_until(lambda: gateway.ask("/cart", CART).status == 202, "the store is back")


class TestTheCommand:
    def test_a_store_that_cannot_be_opened_is_all_that_is_said(self, idle: Served) -> None:
        for engine in ("mysql://x", "sqlite:////nowhere/shoal.db", "redis://127.0.0.1:9/0"):
            answer = shoal("serve", f"{idle.folder}/shop.py", "--port", "0", "--engine", engine)
            assert (answer.returncode, answer.stdout) == (2, "")
            assert answer.stderr.startswith("shoal: ")
            assert answer.stderr.count("\n") == 1

    def test_a_port_that_is_taken(self, idle: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(idle.folder)
        port = idle.url.rsplit(":", 1)[1]
        answer = shoal("serve", "shop.py", "--port", port)
        assert answer.returncode == 2
        assert f"port {port}: Address already in use" in answer.stderr

    def test_keys(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert "everybody may use the gateway" in shoal("keys", "list").stderr
        missing = shoal("keys", "revoke", "nobody")
        assert (missing.returncode, "no API key 'nobody'" in missing.stderr) == (2, True)
        for _ in range(2):
            assert shoal("keys", "create", "twin").returncode == 0
        assert "2 API keys are called 'twin'" in shoal("keys", "revoke", "twin").stderr
        assert "twin" in shoal("keys", "list").stdout


class TestForOthersThanThisMachine:
    def test_without_keys_it_must_be_meant(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "shop.py").write_text(SCRAPERS.format(shop="http://127.0.0.1/"))
        for host in ("0.0.0.0", "::"):  # noqa: S104 - nothing listens there for long
            answer = shoal("serve", "shop.py", "--port", "0", "--host", host)
            assert answer.returncode == 2
            assert answer.stderr.count("\n") == 1
            assert "shoal keys create NAME" in answer.stderr
            assert "--without-keys" in answer.stderr

    def test_then_it_is_said_what_that_means(self, shop: str, tmp_path: Path) -> None:
        with served(tmp_path, shop, "--host", "0.0.0.0", "--without-keys", "--processes", "2") as gateway:  # noqa: S104 - for a moment
            assert "Warning: there is no API key." in (tmp_path / "serve.log").read_text()
            assert gateway.ask("/cart", CART).status == 202

    def test_with_a_key_it_is_served(self, shop: str, tmp_path: Path) -> None:
        assert shoal("keys", "create", "ada", "--engine", f"sqlite:///{tmp_path}/shoal.db").returncode == 0
        with served(tmp_path, shop, "--host", "0.0.0.0") as gateway:  # noqa: S104 - for a moment
            assert "Warning" not in (tmp_path / "serve.log").read_text()
            assert gateway.ask("/cart", CART).status == 401
