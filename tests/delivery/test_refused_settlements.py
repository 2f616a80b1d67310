"""A lease client and a store that refuses what came of one page: that page is a dead letter, and nobody ends."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from shoal.core import log_events
from shoal.core.outcome import Blame, Dead, Done, Reason
from shoal.core.task import Extra, NewTask, Policy
from shoal.delivery.lease_client import LeaseClient
from shoal.delivery.options import LeaseOptions
from shoal.errors import Unstorable, UsageError
from shoal.frontier.contract.frontier import Ask, Granted, NewRun
from shoal.frontier.shared.liveness import read_notebook
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.contract.scene import SHOP, pages
from shoal.testing.faulty_engine import FaultyEngine
from shoal.testing.lease_client_contract import QUICK

ODD = b'{"odd":true}'


class PickyEngine(FaultyEngine):
    """Refuses exchanges that bring an odd item; and the first `hiccups` of those that bring nothing.

    `noted`: what the notebook of the one who asks said at each refusal.
    """

    def __init__(self, engine: SqliteEngine, error: Exception, hiccups: int = 0) -> None:
        super().__init__(engine)
        self.error = error
        self.hiccups = hiccups
        self.noted: list[frozenset[int]] = []

    async def exchange(self, ask: Ask) -> Granted:
        if not ask.settlements and self.hiccups:
            self.hiccups -= 1
            raise self.error
        if any(isinstance(each.outcome, Done) and ODD in each.outcome.items for each in ask.settlements):
            self.noted.append(read_notebook(ask.worker.notebook) or frozenset())
            raise self.error
        return await super().exchange(ask)


async def fill(engine: SqliteEngine, number: int) -> None:
    await engine.frontier.create_run(NewRun("run", SHOP, Policy(delay=0, concurrency=number)))
    await engine.frontier.enqueue("run", pages("a.example", number))
    await engine.frontier.seal_run("run")


@pytest.mark.parametrize("error", [Unstorable("It does not hold \0 such a value."), ValueError("who knows")], ids=str)
async def test_the_culprit_is_a_dead_letter_and_the_others_stand(engine: SqliteEngine, error: Exception) -> None:
    await fill(engine, 9)
    picky = PickyEngine(engine, error)
    options = LeaseOptions((SHOP,), drain=True, concurrency=9, charge_all=False)
    with capture_logs() as lines:
        async with asyncio.timeout(60), LeaseClient(picky, options, timing=QUICK) as leases:
            while claimed := await leases.claim():
                for lease in claimed:
                    item = ODD if lease.task.url.endswith("/4") else b'{"n":1}'
                    leases.settle(lease, lease.settlement(Done((item,), url=lease.task.url)))
    counters = (await engine.reader.run("run")).counters
    assert (counters.done, counters.dead, counters.items, counters.crashes, counters.late) == (8, 1, 8, 0, 0)
    (letter,) = await engine.reader.dead("run")
    assert letter.url == "https://a.example/4"
    assert "refused by the store" in letter.reason.text
    assert [line["event"] for line in lines] == [log_events.SETTLEMENT_UNSTORABLE]
    assert not picky.noted[0], "the first time nobody is suspected"
    assert all(letter.task in noted for noted in picky.noted[1:]), "from then on, a sudden death is a crash of it"


async def test_a_claim_that_fails_for_no_known_reason_is_made_again(engine: SqliteEngine) -> None:
    await fill(engine, 1)
    picky = PickyEngine(engine, ValueError("who knows"), hiccups=1)
    with capture_logs() as lines:
        async with asyncio.timeout(60), LeaseClient(picky, LeaseOptions((SHOP,), drain=True), timing=QUICK) as leases:
            (lease,) = await leases.claim()
            leases.settle(lease, lease.settlement(Done()))
    assert [(line["event"], line["loop"]) for line in lines] == [(log_events.BACKGROUND_FAILED, "exchange")]
    assert (await engine.reader.run("run")).counters.done == 1


@pytest.mark.parametrize(
    ("done", "what"),
    [
        (Done(group="a\0b"), "the group cannot be stored, because it contains a NUL"),
        (Done((b"[" * 101 + b"]" * 101,)), "an item cannot be stored, because it is nested deeper"),
        (Done(tasks=(NewTask("https://b.example/", "b" * 600, None),)), "the site cannot be stored, because it is 600"),
        (Done(tasks=(NewTask("https://b.example/", "b", None, extra=Extra(data="\ud800")),)), "JSON cannot hold it"),
        (Done(tasks=(NewTask("https://b.example/", "b", None, extra=Extra(data="\0")),)), "the data cannot be stored"),
    ],
)
async def test_a_plain_worker_is_told_what_no_store_holds(engine: SqliteEngine, done: Done, what: str) -> None:
    await fill(engine, 1)
    async with LeaseClient(engine, LeaseOptions((SHOP,), drain=True), timing=QUICK) as leases:
        (lease,) = await leases.claim()
        await lease.next_start()
        lease.start()
        with pytest.raises(UsageError, match=what):
            leases.settle(lease, done)
        leases.settle(lease, Dead(Reason(Blame.URL, "no\0\ud800" * 1000, "\0")))
    (letter,) = await engine.reader.dead("run")
    assert letter.reason.text.startswith("no\ufffd?no")
    assert len(letter.reason.text) <= 1001
