"""From what a client sent to a job: the input checked by its model, the scraper's start run, every URL at the door."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.clock import millis
from shoal.core.storable import cleaned
from shoal.core.task import NewTask
from shoal.errors import BadScraper
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.jobs import NewJob
from shoal.gateway.http.answer import Problem
from shoal.gateway.jobs.start_threads import StartThreads, TooBusy
from shoal.gateway.options import GatewayOptions
from shoal.intake.admission import Refused, admit
from shoal.runs.seeding import at_start

REFUSALS_SHOWN = 20
LONGEST_REASON = 500
SHOWN_OF_URL = 500


class Prepared(msgspec.Struct, frozen=True):
    """A job that is ready to be stored, and the URLs that will not be fetched for it, with the reasons."""

    job: NewJob
    refused: list[tuple[str, str]] = []


class ServedScraper:
    """One scraper as the gateway serves it."""

    def __init__(self, scraper: Scraper, options: GatewayOptions) -> None:
        policy = scraper.policy()
        if policy.results_ttl is None:
            policy = msgspec.structs.replace(policy, results_ttl=millis(options.results_ttl))
        policy = msgspec.structs.replace(policy, max_tasks=options.max_tasks)
        self.scraper = scraper
        self.policy = policy
        self.queue = f"jobs:{scraper.name}"
        self._options = options

    async def prepare(self, threads: StartThreads, body: bytes | None, urls: list[str] | None) -> Prepared:
        """A job for this input (as JSON), or for these URLs. `body` None = without an input.

        Raises Problem 4xx for what the client can put right. A start that raises, or takes too long, is the scraper's
        own fault: the answer is a job that has failed.
        """
        try:
            return await threads.run(lambda loop: self._prepare(loop, body, urls), self._options.start_timeout)
        except TimeoutError:
            seconds = self._options.start_timeout
            return self._failed(body, f"The start of {self.scraper.name!r} took more than {seconds:g} seconds.")
        except TooBusy:
            raise Problem(
                503,
                "overloaded",
                "Too many jobs are held up in the start of their scraper.",
                headers=((b"retry-after", b"5"),),
            ) from None

    def _prepare(self, loop: asyncio.AbstractEventLoop, body: bytes | None, urls: list[str] | None) -> Prepared:
        """In a thread: whatever the author of the scraper does here may block."""
        model = self._input(body) if urls is None else None
        try:
            requests = at_start(self.scraper, model) if urls is None else _plain(urls)
            tasks, refused = loop.run_until_complete(self._collect(requests))
        except Problem:
            raise
        except BadScraper as error:
            return self._failed(body, str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - anything may be wrong with code that is not ours
            return self._failed(body, f"The start of {self.scraper.name!r} failed with {_spoken(error)}.")
        if not tasks:
            raise Problem(
                422,
                "nothing-to-fetch",
                "With this input there is nothing to fetch." if not refused else "None of the URLs can be fetched.",
                refused=_shown(refused),
            )
        return Prepared(NewJob(self._run(body), tasks), refused)

    def _input(self, body: bytes | None) -> BaseModel | None:
        model = self.scraper.input
        if model is None:
            if body is not None:
                raise Problem(422, "bad-input", f"The scraper {self.scraper.name!r} takes no input.")
            return None
        try:
            return model.model_validate_json(b"null" if body is None else body)
        except ValidationError as error:
            raise bad_input(error) from None

    async def _collect(self, requests: AsyncIterator[Request]) -> tuple[list[NewTask], list[tuple[str, str]]]:
        tasks: list[NewTask] = []
        refused: list[tuple[str, str]] = []
        most = self._options.max_tasks
        async with aclosing(requests):  # type: ignore[type-var]
            async for request in requests:
                task = admit(request, self.scraper, guarded=True)
                if isinstance(task, Refused):
                    refused.append((cleaned(task.url, SHOWN_OF_URL), task.reason))
                elif (reason := self._options.guard.refuses_url(task.url)) is not None:
                    refused.append((task.url, reason))
                else:
                    tasks.append(task)
                if len(tasks) + len(refused) > most:
                    raise Problem(422, "job-too-large", f"A job may begin with at most {most:,} pages.")
        return tasks, refused

    def _run(self, body: bytes | None) -> NewRun:
        name = self.scraper.name
        return NewRun(f"{name}-{secrets.token_hex(16)}", name, self.policy, "distributed", self.queue, body)

    def _failed(self, body: bytes | None, reason: str) -> Prepared:
        return Prepared(NewJob(self._run(body), error=cleaned(reason)))


def fingerprint(scraper: str, body: bytes) -> bytes:
    """What was asked for, in few bytes."""
    return hashlib.sha256(scraper.encode() + b"\0" + body).digest()[:16]


def bad_input(error: ValidationError) -> Problem:
    """What is wrong with an input, field by field."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = problems[0]
    if first["type"] == "json_invalid":
        return Problem(400, "bad-json", f"The body is not JSON: {first['msg']}.")
    fields = [{"field": ".".join(map(str, each["loc"])), "problem": each["msg"]} for each in problems[:REFUSALS_SHOWN]]
    where = f"the field {fields[0]['field']!r}: " if fields[0]["field"] else ""
    return Problem(422, "bad-input", f"The input is wrong: {where}{first['msg']}.", errors=fields)


def _spoken(error: BaseException) -> str:
    text = " ".join(cleaned(error, LONGEST_REASON).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shown(refused: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"url": url, "reason": reason} for url, reason in refused[:REFUSALS_SHOWN]]


async def _plain(urls: list[str]) -> AsyncIterator[Request]:
    for url in urls:
        yield Request(url)


def shown_refusals(prepared: Prepared) -> dict[str, Any]:
    """For the answer to a submission: what will not be fetched, if anything."""
    return {"refused": _shown(prepared.refused)} if prepared.refused else {}
