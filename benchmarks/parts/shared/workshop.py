"""Where the benchmarks are, and the folder for what they make."""

from __future__ import annotations

from pathlib import Path

PARTS = Path(__file__).parents[1]
BENCHMARKS = PARTS.parent
TREE = BENCHMARKS.parent
WORKSHOP = TREE / ".bench"
"""Sites, stores, the peers' environments. It can be deleted at any time."""
