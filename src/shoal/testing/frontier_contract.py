"""Prove your own engine: the rules that every engine keeps, as tests that only need it to be plugged in.

    class TestMyEngine(FrontierContract):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[Harness]:
            ...  # open your engine on an empty store, on a clock that can be moved

What a harness offers is in `shoal.testing.contract.harness`; what an engine lacks is data there, and skips its tests by
name. The tests are grouped by question; each group can also be run alone by naming its class.
"""

from __future__ import annotations

from shoal.testing.contract.harness import Capability, Harness
from shoal.testing.contract.runs.cache import CacheContract, LeftBehindContract
from shoal.testing.contract.runs.job_ends import JobEndContract
from shoal.testing.contract.runs.jobs import JobContract
from shoal.testing.contract.runs.notes import NoteContract, WhereaboutsContract
from shoal.testing.contract.runs.refusals import RefusalContract
from shoal.testing.contract.runs.results import ResultContract
from shoal.testing.contract.runs.runs import RunContract
from shoal.testing.contract.runs.workers import WorkerContract
from shoal.testing.contract.slots.backoff import AsideContract, BackoffContract
from shoal.testing.contract.slots.clocks import ClockContract
from shoal.testing.contract.slots.exit_health import ExitHealthContract
from shoal.testing.contract.slots.exits import ExitContract
from shoal.testing.contract.slots.limits import LimitContract
from shoal.testing.contract.slots.resting import RestingContract
from shoal.testing.contract.slots.site_rules import SiteRulesContract
from shoal.testing.contract.tasks.ahead import AheadContract
from shoal.testing.contract.tasks.claim import ClaimContract
from shoal.testing.contract.tasks.endings import EndingContract
from shoal.testing.contract.tasks.enqueue import EnqueueContract
from shoal.testing.contract.tasks.lanes import LaneContract
from shoal.testing.contract.tasks.leases import LeaseContract
from shoal.testing.contract.tasks.lost_grants import LostGrantContract
from shoal.testing.contract.tasks.settlements import SettlementContract

__all__ = ["Capability", "FrontierContract", "Harness"]


class FrontierContract(
    EnqueueContract,
    ClaimContract,
    ClockContract,
    SiteRulesContract,
    AheadContract,
    ExitContract,
    LimitContract,
    AsideContract,
    BackoffContract,
    ExitHealthContract,
    RestingContract,
    SettlementContract,
    LeaseContract,
    LostGrantContract,
    LaneContract,
    RunContract,
    ResultContract,
    RefusalContract,
    WorkerContract,
    CacheContract,
    LeftBehindContract,
    JobContract,
    JobEndContract,
    NoteContract,
    WhereaboutsContract,
    EndingContract,
):
    """All of it."""
