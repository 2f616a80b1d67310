"""Prove your own engine: the rules that every engine keeps, as tests that only need it to be plugged in.

    class TestMyEngine(FrontierContract):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[Harness]:
            ...  # open your engine on an empty store, on a clock that can be moved

What a harness offers is in `shoal.testing.contract.harness`; what an engine lacks is data there, and skips its tests by
name. The tests are grouped by question; each group can also be run alone by naming its class.
"""

from __future__ import annotations

from shoal.testing.contract.ahead import AheadContract
from shoal.testing.contract.backoff import BackoffContract
from shoal.testing.contract.cache import CacheContract, LeftBehindContract
from shoal.testing.contract.claim import ClaimContract
from shoal.testing.contract.clocks import ClockContract
from shoal.testing.contract.endings import EndingContract
from shoal.testing.contract.enqueue import EnqueueContract
from shoal.testing.contract.exit_health import ExitHealthContract
from shoal.testing.contract.exits import ExitContract
from shoal.testing.contract.harness import Capability, Harness
from shoal.testing.contract.job_ends import JobEndContract
from shoal.testing.contract.jobs import JobContract
from shoal.testing.contract.lanes import LaneContract
from shoal.testing.contract.leases import LeaseContract
from shoal.testing.contract.limits import LimitContract
from shoal.testing.contract.lost_grants import LostGrantContract
from shoal.testing.contract.notes import NoteContract, WhereaboutsContract
from shoal.testing.contract.resting import RestingContract
from shoal.testing.contract.results import ResultContract
from shoal.testing.contract.runs import RunContract
from shoal.testing.contract.settlements import SettlementContract
from shoal.testing.contract.workers import WorkerContract

__all__ = ["Capability", "FrontierContract", "Harness"]


class FrontierContract(
    EnqueueContract,
    ClaimContract,
    ClockContract,
    AheadContract,
    ExitContract,
    LimitContract,
    BackoffContract,
    ExitHealthContract,
    RestingContract,
    SettlementContract,
    LeaseContract,
    LostGrantContract,
    LaneContract,
    RunContract,
    ResultContract,
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
