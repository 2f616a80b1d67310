"""The benchmarks can be started, also after what they use has moved: programs, and parts that run by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROGRAMS = sorted(BENCHMARKS.glob("*.py"))
OWN_PROCESSES = [
    BENCHMARKS / "parts" / name
    for name in ("crawl/shoal_site.py", "frontier/queues/with_shoal.py", "gateway/cart_jobs.py", "gateway/crowd.py")
]
LOADED = "import runpy, sys; sys.path.insert(0, sys.argv[1].rpartition('/')[0]); runpy.run_path(sys.argv[1])"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_a_benchmark_says_how_it_is_used(program: Path) -> None:
    done = subprocess.run([sys.executable, program, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage:" in done.stdout


@pytest.mark.parametrize("part", OWN_PROCESSES, ids=lambda path: path.name)
def test_a_part_that_is_a_process_of_its_own_can_be_loaded(part: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, part], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
