"""What is asked for when a run is started, and which run that means."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from shoal.api.scraper import Scraper
from shoal.config.settings import mask_url
from shoal.core.clock import Clock
from shoal.core.storable import check_run_id
from shoal.core.task import RunState
from shoal.errors import UnknownRun, UsageError
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.mover import MoveState
from shoal.frontier.contract.reader import Reader
from shoal.runs.command_line import CommandLine
from shoal.runs.export.output import Output
from shoal.runs.seeding import new_run_id

ENDED = (RunState.FINISHED, RunState.CANCELLED)


class ChosenRun(NamedTuple):
    """The run that is meant. `found`: as it was when it was chosen; None = it is to be made. `fill`: it takes URLs."""

    run_id: str
    found: Run | None
    fill: bool


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One wish to have a scraper run.

    `target`: where other processes find the scraper. `urls` and `input`: None = none given. `mode`: None = the
    scraper's own. `run_id`: None = a new one or, with `resume`, the newest unfinished run of the scraper. A distributed
    run can be given more under its id, and takes what it has not seen; one of mode single is only gone on with.
    `or_start`: with `resume`, where there is nothing to go on with, a run is started; `urls` and `input` are for that.
    `once`: no page is visited again. `wait`: a run that is left to workers is followed until it ends. `outputs`: where
    its items go at its end. `line`: how other processes find the settings and the store. `options`: what else stood on
    the command line and is to be said again by whoever goes on; `seeds`: the same, as long as it is being filled.
    """

    scraper: Scraper
    target: str
    urls: AsyncIterable[str] | Iterable[str] | None = None
    input: bytes | None = None
    mode: str | None = None
    run_id: str | None = None
    resume: bool = False
    or_start: bool = False
    once: bool = False
    wait: bool = False
    outputs: tuple[Output, ...] = ()
    line: CommandLine = field(default_factory=CommandLine)
    options: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()

    @property
    def distributed(self) -> bool:
        """Whether the work is left to workers."""
        return (self.mode or self.scraper.mode) == "distributed"

    def worker_command(self, run_id: str) -> str:
        """The command that starts a worker for the run."""
        return self.line.of("worker", self.target, "--run-id", run_id)

    def resume_command(self, run_id: str, *, filling: bool = False) -> str:
        """The command that goes on with the run, to the same end. `filling`: it does not have all its URLs yet."""
        outputs = [word for output in self.outputs for word in ("-o", mask_url(output.target))]
        if any(output.to_be_replaced for output in self.outputs):
            outputs.append("--replace")
        seeds = self.seeds if filling else ()
        return self.line.of("run", self.target, "--resume", "--run-id", run_id, *seeds, *outputs, *self.options)


async def choose_run(request: RunRequest, reader: Reader, clock: Clock) -> ChosenRun:
    """Find the run that is meant, or a name for a new one. Raises UsageError if what was asked for cannot be."""
    if request.resume and (run := await _to_resume(request, reader)) is not None:
        if request.urls is not None and run.state is not RunState.OPEN and not request.or_start:
            raise UsageError(
                f"The run {run.run_id} has its URLs already; resume it without giving URLs, or add some to a "
                "distributed run under its id without resuming."
            )
        return ChosenRun(run.run_id, run, fill=run.state is RunState.OPEN)
    if request.run_id is None:
        return ChosenRun(new_run_id(request.scraper.name, clock), None, fill=True)
    try:
        run = await _named(request, reader, request.run_id)
    except UnknownRun:
        check_run_id(request.run_id)
        return ChosenRun(request.run_id, None, fill=True)
    if not request.distributed:
        raise UsageError(
            f"There is a run {request.run_id!r} already; add --resume to go on with it (in Python: resume=True), "
            "or choose another id."
        )
    if request.input is not None and request.input != run.input:
        raise UsageError(f"The run {request.run_id!r} was started with another input; choose another id.")
    return ChosenRun(request.run_id, run, fill=True)


async def _to_resume(request: RunRequest, reader: Reader) -> Run | None:
    """The run to go on with. None = there is none, and one may be started instead."""
    if request.run_id is not None:
        try:
            return await _named(request, reader, request.run_id)
        except UnknownRun:
            if request.or_start:
                return None
            raise
    name = request.scraper.name
    mine = [run for run in await reader.runs() if run.scraper == name]
    unfinished = [run for run in mine if run.state not in ENDED]
    if unfinished:
        return next((run for run in unfinished if run.left_for_pages or run.state is RunState.OPEN), unfinished[0])
    if request.or_start:
        return None
    finished = next((run for run in mine if run.state is RunState.FINISHED), None)
    if finished is None or not request.outputs:
        raise UsageError(f"There is no unfinished run of {name!r} to resume. Start a new one.")
    return finished  # it may have been killed when all was done but the writing


async def _named(request: RunRequest, reader: Reader, run_id: str) -> Run:
    run = await reader.run(run_id)
    if run.scraper != request.scraper.name:
        raise UsageError(f"The run {run_id!r} is one of the scraper {run.scraper!r}, not of {request.scraper.name!r}.")
    if run.move is not None and run.move.state is MoveState.LEFT:
        raise UsageError(f"The run {run_id!r} was moved to {run.move.other}: resume it there, with that --engine.")
    if run.state is RunState.CANCELLED:
        raise UsageError(f"The run {run_id!r} was cancelled and cannot be resumed; start a new one.")
    return run
