"""What those may want to know who work with a lease client: a part of a worker, mostly."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.notes import Note
from shoal.core.outcome import Settlement
from shoal.delivery.held_lease import HeldLease


class LeaseWatcher:
    """Told of what happens to leases, as it happens; does nothing. To be derived from. None of its methods may raise or
    take long: the client waits for them."""

    def notes(self) -> Sequence[Note]:
        """Asked before each exchange: what is to be kept with it, late settlements or not. Asked for once: what was
        handed over is brought again until the store has it."""
        return ()

    def settled(
        self, heard: Sequence[Settlement], stood: Sequence[Settlement], unsettled: Sequence[Settlement]
    ) -> None:
        """The store has heard of these, has let those stand, and has not heard of the last ones yet."""

    def lost(self, held: HeldLease) -> None:
        """The store says that this lease no longer lives: its work is to be stopped, and it is to be given back."""

    def failed(self, error: BaseException) -> None:
        """The store has failed for good: the client has ended, and says so to whoever claims."""
