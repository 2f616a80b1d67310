"""`books.run()`: one run from a script or a notebook, with the items that it gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.runs.event_loop import in_loop_beside
from shoal.runs.orchestrator import AsyncOrchestrator, Existing, Resume
from shoal.runs.results import RunResult

if TYPE_CHECKING:
    from shoal.api.scraper import Scraper

__all__ = ["Existing", "Resume", "RunResult", "run_scraper"]


def run_scraper(
    scraper: Scraper,
    *,
    urls: Iterable[str] | None = None,
    input: Mapping[str, Any] | bytes | None = None,  # noqa: A002 - the word of the API
    run_id: str | None = None,
    resume: Resume = False,
    output: str | Path | Sequence[str | Path] | None = None,
    if_exists: Existing = "refuse",
    engine: str | None = None,
) -> RunResult:
    """What `Scraper.run` does."""

    async def run() -> RunResult:
        async with AsyncOrchestrator(scraper, engine=engine) as orchestrator:
            result = await orchestrator.start(
                urls=urls,
                input=input,
                mode="single",
                run_id=run_id,
                resume=resume,
                output=output,
                if_exists=if_exists,
            )
            items = [item async for item in orchestrator.items(result.run_id)]
            return msgspec.structs.replace(result, items=items)

    return in_loop_beside(run())
