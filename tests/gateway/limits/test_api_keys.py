"""Keys: whose jobs are whose."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.command_line import shoal
from support.gateway_process import CART, Served, problem, served
from support.waiting import wait_until


@pytest.fixture(scope="module")
def running(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway whose clients need keys."""
    with served(tmp_path_factory.mktemp("keys"), shop) as gateway:
        yield gateway


class TestKeys:
    @pytest.fixture
    def guarded(self, running: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
        """A gateway, and its store as the one that commands use."""
        monkeypatch.chdir(running.folder)
        monkeypatch.setenv("SHOAL_ENGINE", f"sqlite:///{running.folder}/shoal.db")
        return running

    def make(self, name: str, *options: str) -> str:
        made = shoal("keys", "create", name, *options)
        assert made.returncode == 0, made.stderr
        return f"Bearer {made.stdout.strip()}"

    def test_nobody_sees_the_jobs_of_another(self, guarded: Served) -> None:
        ada, bob, boss = (self.make(name, *more) for name, *more in (["ada"], ["bob"], ["boss", "--scope", "admin"]))
        job_id = guarded.submit("/cart", CART, Authorization=ada)
        assert guarded.ask(f"/results/{job_id}", Authorization=ada).status == 200
        assert guarded.ask(f"/results/{job_id}", X_API_Key=ada.split()[1]).status == 200
        assert guarded.ask(f"/results/{job_id}", Authorization=boss).status == 200
        for path in (f"/results/{job_id}", f"/jobs/{job_id}", f"/jobs/{job_id}/items", f"/jobs/{job_id}/events"):
            problem(guarded.ask(path, Authorization=bob), 404, "unknown-job")
            problem(guarded.ask(path), 401, "no-api-key")
        problem(guarded.ask(f"/jobs/{job_id}", method="DELETE", Authorization=bob), 404, "unknown-job")
        assert [job["job_id"] for job in guarded.ask("/jobs", Authorization=ada).body["jobs"]] == [job_id]
        assert guarded.ask("/jobs", Authorization=bob).body == {"jobs": [], "next": None}
        other = guarded.submit("/cart", CART, Authorization=bob)
        page = guarded.ask("/jobs?limit=1", Authorization=boss).body
        rest = guarded.ask(f"/jobs?limit=1&before={page['next']}", Authorization=boss).body
        assert [page["jobs"][0]["job_id"], rest["jobs"][0]["job_id"]] == [other, job_id]

    def test_idempotency_keys_are_the_owners_own(self, guarded: Served) -> None:
        ada, bob = self.make("ada"), self.make("bob")
        jobs = {guarded.submit("/cart", CART, Authorization=who, Idempotency_Key="1") for who in (ada, bob, ada)}
        assert len(jobs) == 2

    def test_a_key_that_is_not_good(self, guarded: Served) -> None:
        self.make("ada")
        bob = self.make("robert")
        for wrong in ("Bearer nonsense", "Bearer ", "Basic YTpi", "nonsense"):
            answer = guarded.ask("/cart", CART, Authorization=wrong)
            problem(answer, 401, "no-api-key")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert guarded.ask("/cart", CART, Authorization=bob).status == 202
        assert shoal("keys", "revoke", "robert").returncode == 0
        wait_until(lambda: guarded.ask("/cart", CART, Authorization=bob).status == 401, "the revoked key is refused")

    def test_only_hashes_are_stored(self, guarded: Served) -> None:
        secret = self.make("ada").split()[1]
        listed = shoal("keys", "list", "--json")
        assert "ada" in {each["name"] for each in json.loads(listed.stdout)}
        assert secret not in listed.stdout
        for file in guarded.folder.glob("shoal.db*"):
            assert secret.encode() not in file.read_bytes()
