"""What an engine's author supplies to have the engine proven: a way to open it, and a hold on its time."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import pytest

from shoal.core.clock import Millis
from shoal.frontier.contract.jobs import Store


class Capability(StrEnum):
    """What an engine may honestly lack. A test that needs one skips, and the skip says which."""

    REOPENING = "reopening"
    """What was accepted is there after the engine was closed and opened again (I8)."""
    SEVERAL_HANDLES = "several handles"
    """The store can be opened twice at once, as by another process."""
    PRIVATE_EXITS = "private exits"
    """Workers that know different exits of one pool do not hold each other up."""
    JOBS = "jobs"
    """Jobs of the gateway, and records."""
    EXACT_CAPS = "exact caps"
    """The cap of an exit is kept to the letter; otherwise it may be reached a little early."""
    LANES_OF_SHARED_QUEUES = "lanes of shared queues"
    """`Run.lanes` tells the tasks of one run apart from those of other runs in its queue."""


class Harness(Protocol):
    """An engine on an empty store, and what a test may do to it. One is made for each test, by a fixture `harness`.

    `lacks`: for each capability that this engine does not have, the reason, shown by the skip.
    """

    @property
    def engine(self) -> Store: ...

    @property
    def lacks(self) -> Mapping[Capability, str]: ...

    async def advance(self, ms: Millis) -> None:
        """Let `ms` pass on the store's clock, for all handles. No real time needs to pass."""
        ...

    async def another(self) -> Store:
        """A second, independent handle on the same store. The harness closes it in the end."""
        ...

    async def reopen(self) -> None:
        """Close `engine` and open the same store again: from now on, `engine` is the new one."""
        ...


def needs(harness: Harness, capability: Capability) -> None:
    """Skip this test if the engine lacks what it is about."""
    if capability in harness.lacks:
        pytest.skip(f"lacks {capability.value}: {harness.lacks[capability]}")
