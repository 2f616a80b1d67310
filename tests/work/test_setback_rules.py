"""What a setback is made of: the shared cache, the count of failures in a row, and who fails by itself."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shoal.core.outcome import Blame, Dead, Outcome, Reason, Retried, Snoozed
from shoal.core.politeness import ASIDE_FIRST, OUTAGE_FIRST
from shoal.core.task import NO_EXTRA, Extra, Lease, Task
from shoal.delivery.held_lease import HeldLease
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.insight.audit import Robots
from shoal.testing.jump_clock import JumpClock
from shoal.work.connectivity import Connectivity
from shoal.work.options import WorkTiming
from shoal.work.task.attempt import Attempt, Made, Trouble
from shoal.work.task.setbacks import Setbacks
from support.working import reader

FAILED = Retried(2000, Reason(Blame.HOST, "connection refused"))
SCRAPER = reader(site_down_after=60, max_rate_limits=3)


class Weighed:
    """Attempts of one worker at one site, on a clock that jumps."""

    def __init__(self, engine: SqliteEngine) -> None:
        self.clock = JumpClock()
        self.engine = engine
        chance = random.Random(1)
        self.setbacks = Setbacks(engine.cache, self.clock, chance, WorkTiming(), Connectivity(chance))

    async def weigh(
        self,
        url: str,
        outcome: Outcome,
        trouble: Trouble | None,
        *,
        status: int = 0,
        penalty: int = 1,
        extra: Extra = NO_EXTRA,
        **lease: Any,
    ) -> Outcome:
        now = self.clock.now()
        task = Task(1, "run", "test", f"http://x.example/{url}", "x.example", "bulk", None, 0, 0, 0, 0, extra)
        slot = {"exit": "direct", **lease}
        granted = Lease(task, 7, slot["exit"], now, now, now + 1000, now + 300_000, 100, True, penalty)
        attempt = Attempt(HeldLease(granted, self.clock, now - self.clock.elapsed()))
        attempt.trouble = trouble
        if status:
            attempt.made.append(Made(now, 0, 1, status, 100, Robots.ALLOWED))
        weighed = await self.setbacks.weigh(attempt, outcome, SCRAPER)
        self.left = attempt.entries
        await self.engine.cache.put([entry for entry in attempt.entries if entry.ttl])
        return weighed

    async def answered(self, url: str, *, penalty: int = 1) -> None:
        await self.weigh(url, FAILED, None, status=200, penalty=penalty)


@pytest.fixture
def weighed(engine: SqliteEngine) -> Weighed:
    return Weighed(engine)


async def test_a_site_that_is_down_waits_longer_each_time_and_its_tasks_step_aside(weighed: Weighed) -> None:
    began = weighed.clock.now()
    for number in range(3):
        outcome = await weighed.weigh("a", FAILED, Trouble.SITE)
        assert isinstance(outcome, Snoozed)
        assert OUTAGE_FIRST << number <= outcome.wait <= 1.25 * (OUTAGE_FIRST << number)
        assert outcome.aside == outcome.wait + ASIDE_FIRST
        assert outcome.extra is not None
        assert outcome.extra.set_back_since == weighed.clock.now()
        weighed.clock.advance(outcome.wait)
    weighed.clock.advance(began + 60_000 - weighed.clock.now())
    outcome = await weighed.weigh("b", FAILED, Trouble.SITE)
    assert isinstance(outcome, Dead)
    assert outcome.reason.text.startswith("site down since ")


async def test_what_is_answered_ends_the_outage(weighed: Weighed) -> None:
    await weighed.weigh("a", FAILED, Trouble.SITE)
    [down] = weighed.left
    await weighed.answered("b")
    let_go, answered = weighed.left
    assert (let_go.key, let_go.value, let_go.ttl) == (down.key, down.value, 0)
    assert answered.key == "x.example answered direct"
    assert down.key == "x.example down direct"


async def test_where_nothing_was_set_back_nothing_is_asked_or_kept(weighed: Weighed) -> None:
    await weighed.answered("a", penalty=0)
    assert weighed.left == ()


async def test_three_pages_in_a_row_make_a_site_that_is_down_and_one_page_three_times_does_not(
    weighed: Weighed,
) -> None:
    for url in ("a", "a", "a", "b"):
        assert await weighed.weigh(url, FAILED, Trouble.DOUBT, penalty=0) is FAILED
    await weighed.answered("c", penalty=0)
    for url in ("a", "b"):
        assert await weighed.weigh(url, FAILED, Trouble.DOUBT, penalty=0) is FAILED
    assert isinstance(await weighed.weigh("d", FAILED, Trouble.DOUBT, penalty=0), Snoozed)


@pytest.mark.parametrize("trouble", [Trouble.SITE, Trouble.DOUBT])
async def test_a_page_that_fails_although_others_are_answered_fails_by_itself(
    weighed: Weighed, trouble: Trouble
) -> None:
    outcome = await weighed.weigh("a", FAILED, Trouble.SITE)
    assert isinstance(outcome, Snoozed)
    assert outcome.extra is not None
    weighed.clock.advance(outcome.wait)
    assert isinstance(await weighed.weigh("a", FAILED, trouble, extra=outcome.extra), Snoozed), "nothing was answered"
    weighed.clock.advance(60_000)
    await weighed.answered("b")
    assert await weighed.weigh("a", FAILED, trouble, extra=outcome.extra) is FAILED


async def test_a_limit_is_held_against_a_page_only_when_others_were_answered(weighed: Weighed) -> None:
    extra, limited = NO_EXTRA, Snoozed(1000, 2, Reason(Blame.HOST, "rate limited (HTTP 429)"))
    for number in range(1, 10):
        outcome = await weighed.weigh("a", limited, Trouble.LIMIT, extra=extra)
        assert isinstance(outcome, Snoozed)
        assert (outcome.wait, outcome.penalty, outcome.aside) == (1000, 2, 1000 + ASIDE_FIRST)
        assert outcome.extra is not None
        assert outcome.extra.limits == number
        extra = outcome.extra
        weighed.clock.advance(3000)
    await weighed.answered("b")
    outcome = await weighed.weigh("a", limited, Trouble.LIMIT, extra=extra)
    assert isinstance(outcome, Dead)
    assert outcome.reason.blame is Blame.URL


async def test_the_first_time_other_exits_may_try_at_once(weighed: Weighed) -> None:
    limited = Snoozed(3_600_000, 1, Reason(Blame.HOST, "rate limited (HTTP 429)"))
    outcome = await weighed.weigh("a", limited, Trouble.LIMIT, exit="proxy")
    assert isinstance(outcome, Snoozed)
    assert outcome.aside == ASIDE_FIRST
    assert outcome.extra is not None
    outcome = await weighed.weigh("a", limited, Trouble.LIMIT, exit="proxy", extra=outcome.extra)
    assert isinstance(outcome, Snoozed)
    assert outcome.aside == limited.wait + ASIDE_FIRST
