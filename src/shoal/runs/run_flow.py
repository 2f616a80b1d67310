"""One run from request to result: choose, fill, work here or hand over, export. The only place where this is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.core.lanes import page_lanes
from shoal.errors import UsageError
from shoal.frontier.retrying import patient
from shoal.runs.export.export import export, items_of
from shoal.runs.export.live import written_meanwhile
from shoal.runs.export.places.local_file import IfExists
from shoal.runs.results import BarrenStart, ResultStatus, RunResult, status_of
from shoal.runs.run_hooks import RunHooks
from shoal.runs.run_request import choose_run
from shoal.runs.seeding import Seeded, seed
from shoal.runs.staffing import check_staffed
from shoal.runs.worker_options import worker_options
from shoal.work.process.run_halts import halt_of
from shoal.work.worker import Worker

if TYPE_CHECKING:
    from shoal.config.settings import Settings
    from shoal.frontier.contract.engine import Engine
    from shoal.frontier.contract.frontier import Run
    from shoal.runs.run_request import ChosenRun, RunRequest
    from shoal.work.task.tally import Tally


class RunFlow:
    """Carries out requests on one store. A store that goes away meanwhile is waited for."""

    def __init__(self, store: Engine, settings: Settings, hooks: RunHooks | None = None) -> None:
        self._store = store
        self._engine = patient(store)
        self._settings = settings
        self._hooks = hooks or RunHooks()
        self._clock = self._hooks.clock

    async def carry_out(self, request: RunRequest) -> RunResult:
        """Do all that is asked for. Raises UsageError for what cannot be done, and EngineError for a broken store.

        Interrupted by the user (`RunHooks.work`): EngineUnavailable, if the store cannot say where the run stands.
        """
        check_staffed(request.scraper)
        chosen = await choose_run(request, self._engine.reader, self._clock)
        self._hooks.chosen(request, chosen)
        with self._hooks.filling(request, chosen):
            seeded = await self._fill(request, chosen)
        self._hooks.filled(request, chosen, seeded)
        before = await self._engine.reader.run(chosen.run_id)
        if request.distributed:
            return await self._hand_over(request, before, seeded.accepted)
        return await self._work_here(request, before, seeded.accepted)

    async def _fill(self, request: RunRequest, chosen: ChosenRun) -> Seeded:
        """Make the run if need be, let it go on if it was paused, and enqueue what it lacks, as a stream.

        The same again adds nothing. Raises UsageError if the run has nothing to begin with.
        """
        if request.resume and chosen.found is not None:
            await self._engine.frontier.resume_run(chosen.run_id)
        if not chosen.fill:
            return Seeded()
        scraper = request.scraper
        given = request.input if request.input is not None or chosen.found is None else chosen.found.input
        mode = request.mode or scraper.mode
        seeded = await seed(self._engine, scraper, chosen.run_id, urls=request.urls, input=given, mode=mode, add=True)
        if not seeded.accepted and not seeded.duplicates:
            raise UsageError(
                f"There is nothing to fetch: {scraper.name!r} begins nowhere that can be fetched. "
                "Give it start=[…] in its code, or give the run URLs."
            )
        return seeded

    async def _hand_over(self, request: RunRequest, run: Run, enqueued: int) -> RunResult:
        """Distributed mode: say how workers are started; if that is asked for, wait until they are done."""
        command = request.worker_command(run.run_id)
        queued = RunResult(status=ResultStatus.QUEUED, enqueued=enqueued, run=status_of(run), worker_command=command)
        self._hooks.handed_over(request, queued)
        if not request.wait:
            return queued
        began = self._clock.elapsed()
        async with written_meanwhile(self._engine.reader, run.run_id, request.outputs, self._clock):
            ended = await self._hooks.follow(self._engine, run.run_id)
        return await self._end(request, ended, enqueued, began, worker_command=command)

    async def _work_here(self, request: RunRequest, before: Run, enqueued: int) -> RunResult:
        """Mode single: work until nothing is left for page workers, or the user has had enough."""
        options = worker_options(
            self._settings,
            lanes=page_lanes(request.scraper.lanes),
            queues=(before.queue,),
            drain=True,
            revisit=not request.once,
        )
        worker = Worker(self._engine, [request.scraper], options, around=self._hooks.around)
        began, done = self._clock.elapsed(), before.counters.done
        async with written_meanwhile(self._engine.reader, before.run_id, request.outputs, self._clock):
            interrupted = await self._hooks.work(self._engine, before, worker)
        if interrupted:
            left = await self._store.reader.run(before.run_id)  # nobody who has pressed Ctrl-C waits for a store
            if left.left_for_pages:
                return RunResult(
                    status=ResultStatus.INTERRUPTED,
                    enqueued=enqueued,
                    run=status_of(left),
                    completed_before=done,
                    exported=await _export(request, self._store, left, unfinished=True),
                )
        ended = await self._engine.reader.run(before.run_id)
        return await self._end(request, ended, enqueued, began, completed_before=done, tally=worker.tally)

    async def _end(
        self,
        request: RunRequest,
        run: Run,
        enqueued: int,
        began: float,
        *,
        completed_before: int = 0,
        worker_command: str | None = None,
        tally: Tally | None = None,
    ) -> RunResult:
        """The items go where they were asked for."""
        seconds = (self._clock.elapsed() - began) / 1000
        halt = await halt_of(self._engine.reader, self._engine.cache, run.run_id)
        barren = None if tally is None or run.counters.items else tally.barren_start
        return RunResult(
            status=ResultStatus(run.state.value),
            enqueued=enqueued,
            run=status_of(run),
            worker_command=worker_command,
            seconds=seconds,
            completed_before=completed_before,
            halted=None if halt is None else halt.sentence,
            exported=await _export(request, self._engine, run),
            refused_by={} if tally is None else dict(tally.refused),
            dropped_by={} if tally is None else dict(tally.dropped),
            barren_start=None if barren is None else BarrenStart(*barren),
        )


async def _export(request: RunRequest, store: Engine, run: Run, *, unfinished: bool = False) -> int | None:
    """Write the items that are there now to all outputs. Answers how many; None = none were to be written.

    Live ones have them already. What is appended to a file waits for the end of the run: the rest would repeat it.
    """
    written: int | None = None
    for output in request.outputs:
        if output.live:
            written = run.counters.items
        elif not (unfinished and output.is_file and output.if_exists is IfExists.APPEND):
            written = await export(items_of(store.reader, run.run_id), output, run.run_id)
    return written
