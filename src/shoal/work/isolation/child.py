"""A handler process: loads the scrapers, then reads one page after the other as its worker asks, until it hangs up.

`python -m shoal.work.isolation.child SOCKET REPORT`, both as descriptors. It may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import resource
import socket
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from multidict import CIMultiDict

from shoal.api.page import Page
from shoal.api.yields import collect
from shoal.config.target import load_scrapers
from shoal.core.html.content import content_hash
from shoal.core.task import Hop
from shoal.core.url import NormalURL
from shoal.errors import BadScraper, ShoalError
from shoal.work.isolation.messages import LENGTH, Hello, PageRead, PageWork, Ready, SentRequest, framed
from shoal.work.task.handler_failure import failure_of

if TYPE_CHECKING:
    from shoal.api.handler import Handler
    from shoal.api.scraper import Scraper

_PAGE_SIZE = resource.getpagesize()
_answers = msgspec.msgpack.Decoder(PageRead)


def main() -> None:
    """Serve until the other side hangs up."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    report = os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")
    loop = asyncio.new_event_loop()  # a Runner would take a quarter of a millisecond for each page, for Ctrl-C
    asyncio.set_event_loop(loop)
    with connection.makefile("rwb") as stream, closing(loop):

        def receive(kind: Any) -> Any:
            length = stream.read(LENGTH.size)
            return msgspec.msgpack.decode(stream.read(*LENGTH.unpack(length)), type=kind) if length else None

        def send(message: Any) -> None:
            stream.write(framed(message) if not isinstance(message, bytes) else message)
            stream.flush()

        hello = receive(Hello)
        if hello is None:
            return
        try:
            scrapers = _load(hello)
        except ShoalError as error:
            send(Ready(str(error)))
            return
        _bound_memory(hello.memory)
        send(Ready())
        while (work := receive(PageWork)) is not None:
            # It needs no Python to run: what holds the interpreter is told of, and ended, like anything else.
            faulthandler.dump_traceback_later(hello.timeout, exit=True, file=report)
            answer = _answer(work, scrapers[work.scraper].handler(work.label), loop)
            faulthandler.cancel_dump_traceback_later()
            send(answer)


def _load(hello: Hello) -> dict[str, Scraper]:
    sys.path[:] = hello.search_path
    scrapers = {scraper.name: scraper for scraper in load_scrapers(hello.targets)}
    for name, labels in hello.labels.items():
        found = scrapers[name].handlers if name in scrapers else {}
        if missing := [label for label in labels if label not in found]:
            shown = ", ".join("the default one" if label is None else repr(label) for label in missing)
            raise BadScraper(f"Scraper {name!r} has handlers that are not there when its file is loaded: {shown}.")
    return scrapers


def _bound_memory(most: int) -> None:
    """So many bytes more than now. Where that cannot be (not on Linux), only its time is bounded."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - as plain as it can be
            now = int(file.read().split()[0]) * _PAGE_SIZE
        resource.setrlimit(resource.RLIMIT_AS, (now + most, now + most))


def _answer(work: PageWork, handler: Handler, loop: asyncio.AbstractEventLoop) -> bytes:
    """As it is sent. What cannot be sent is a mistake of the handler, and told as one."""
    read = loop.run_until_complete(_read(work, handler))
    try:
        framed_answer = framed(read)
        _answers.decode(framed_answer[LENGTH.size :])
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        mistake = BadScraper(f"Scraper {work.scraper!r} asks for something that cannot be sent on: {error}.")
        return framed(PageRead(failure=failure_of(mistake, handler)))
    return framed_answer


async def _read(work: PageWork, handler: Handler) -> PageRead:
    """What the handler gives, or how it failed. The page is hashed here too: that is to parse it."""
    request = msgspec.structs.replace(work.request.received(), url=NormalURL(work.request.url))
    page = Page(
        work.url, work.body, status=work.status, headers=CIMultiDict(work.headers), request=request, depth=work.depth,
        history=[Hop(url, status, dict(headers)) for url, status, headers in work.history],
    )  # fmt: skip
    try:
        digest = None if work.volatile is None else content_hash(page.body, page.headers, work.volatile)
        page.unchanged = work.unchanged if digest is None else digest == work.last
        collected = await collect(handler.function(page), handler, work.url)
        requests = [SentRequest.of(request) for request in collected.requests]
    except BaseException as error:  # noqa: BLE001 - whatever it raises is an outcome
        return PageRead(failure=failure_of(error, handler))
    return PageRead(collected.items, requests, len(page.refused), digest)


if __name__ == "__main__":
    main()
