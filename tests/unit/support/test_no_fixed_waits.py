"""Tests wait for conditions, not for seconds: `support.waiting` is where they wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[2]

MAY_SLEEP = {
    "support/waiting.py": "it is the helper",
    "proof/chaos": "a drill does harm for as long as its plan says, at the moments that it says",
    "proof/test_outage.py": "an echo of a signal is what comes within half a second",
    "proof/test_move_of_a_crawl.py": "a kill at a random moment, in the middle or after the end",
    "gateway/limits/test_store_breaker.py": "a process that is busy is what is tested",
    "fetch/test_http_limits.py": "between two pieces of an answer, so that they come apart; the same if they do not",
    "engines/postgres/test_postgres_engine.py": "a call is cancelled at moments between its beginning and its end",
    "engines/postgres/test_postgres_floors.py": "floors are raised ten times a second, by the server's clock",
    "engines/postgres/test_postgres_storm.py": "workers, sweeps and harm, each at its own pace",
    "engines/redis/test_redis_cluster.py": "a worker that has nothing to do, at its own pace",
    "engines/redis/test_redis_engine.py": "workers that work, each at its own pace",
    "work/test_page_history.py": "until an answer that is fresh for a millisecond is not",
    "work/test_single_flight.py": "a handler that takes longer than a flight lasts by itself",
    "work/test_one_flight.py": "between two questions to a gateway, until jobs end or the target is asked again",
    "work/test_worker_leases.py": "a handler that is stopped in the middle",
    "work/test_worker_stops.py": "handlers and harm, each at its own pace",
    "cli/test_cli_run.py": "a handler that does not end by itself",
    "cli/test_fleet_view.py": "a handler that does not end by itself",
    "servers/proxy.py": "for transports to close what was aborted",
}
"""Files and folders, with the reason."""


def test_tests_wait_for_conditions() -> None:
    found = [
        f"{place}:{line}"
        for place, line in _sleeps()
        if not any(place == each or place.startswith(f"{each}/") for each in MAY_SLEEP)
    ]
    assert not found, "Wait for a condition (support.waiting), or say in this file why not."


def test_what_may_sleep_is_still_there() -> None:
    assert {place for place in MAY_SLEEP if not (TESTS / place).exists()} == set()


def _sleeps() -> Iterator[tuple[str, int]]:
    """Every sleep that takes time. Those that never end (an hour and more) are ways to stay, not to wait."""
    for file in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _is_sleep(node.func) and not _takes_no_time_or_for_ever(node):
                yield str(file.relative_to(TESTS)), node.lineno


def _is_sleep(node: ast.expr) -> bool:
    owner = node.value if isinstance(node, ast.Attribute) and node.attr == "sleep" else None
    return isinstance(owner, ast.Name) and owner.id in ("asyncio", "time")


def _takes_no_time_or_for_ever(call: ast.Call) -> bool:
    value = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    return isinstance(value, int | float) and (value == 0 or value >= 600)
