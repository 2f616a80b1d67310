"""An exit by an address that this machine does not have: its own failure, and nobody else's."""

from __future__ import annotations

from pathlib import Path

import structlog

from shoal.core.task import Policy
from shoal.testing.hostile_site import HostileSite
from support.fleet import ways, work_together
from support.working import reader


async def test_an_address_that_this_machine_does_not_have(site: HostileSite, tmp_path: Path) -> None:
    """Every page is had by the other exit, nothing is charged to a URL, and the worker says why."""
    urls = [site.url(f"/site/20/p/{page}") for page in range(10)]
    exits = ways("source://192.0.2.7", "source://127.0.0.2")
    with structlog.testing.capture_logs() as logs:
        worked = await work_together(
            f"sqlite:///{tmp_path}/shoal.db", reader(delay=0.02), urls, exits, workers=1, policy=Policy(delay=20)
        )
    assert (len(worked.items), worked.counters.dead, worked.counters.retries) == (10, 0, 0)
    assert {entry.peer for entry in site.log} == {"127.0.0.2"}
    said = {(entry["exit"], entry["reason"]) for entry in logs if entry["event"] == "exit.failed"}
    assert said == {("192.0.2.7", "this machine does not have the source address")}
    record = worked.exits["192.0.2.7"]
    assert record.failures >= 3
    assert record.quarantined_until > 0
