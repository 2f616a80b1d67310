"""Pages that can be asked about: ETag, Last-Modified, 304, and what servers say about keeping their answers."""

from __future__ import annotations

from email.utils import formatdate, parsedate_to_datetime
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.testing.hostile.call import Call, Handler

EPOCH = 1_700_000_000


def _page(call: Call, name: str) -> tuple[str, int]:
    """A page that says `v1` until it is told otherwise with `/change/{name}`."""
    version = 1 + call.memory.asked.get(f"change {name}", 0)
    return f"<html><body><h1>{name} v{version}</h1><p>{'all there is to say. ' * 50}</p></body></html>", version


async def _etag(call: Call, rest: list[str]) -> None:
    body, _ = _page(call, rest[0])
    tag = f'"{sha256(body.encode()).hexdigest()[:16]}"'
    status = 304 if tag in call.headers.get("if-none-match", "") else 200
    await call.answer(body, ("ETag", tag), ("X-Asked", str(call.memory.count("etag"))), status=status)


async def _modified(call: Call, rest: list[str]) -> None:
    body, version = _page(call, rest[0])
    changed = EPOCH + version
    since = call.headers.get("if-modified-since")
    known = since is not None and parsedate_to_datetime(since).timestamp() >= changed
    await call.answer(body, ("Last-Modified", formatdate(changed, usegmt=True)), status=304 if known else 200)


async def _plain(call: Call, rest: list[str]) -> None:
    body, _ = _page(call, rest[0])
    await call.answer(body, *(pair for pair in call.query.items()))


async def _ticking(call: Call, rest: list[str]) -> None:
    """The same page each time, but for a script, a comment, some space and a token; `pause` milliseconds later."""
    body, _ = _page(call, rest[0])
    number = call.memory.count("ticking")
    headers = dict(call.query)
    await call.pause(int(headers.pop("pause", "0")) / 1000)
    noise = f"<script>var n = {number}</script><!-- {number} -->{' ' * number}<i id=token>{number}</i>"
    await call.answer(body.replace("<p>", f"{noise}<p>"), *headers.items())


async def _change(call: Call, rest: list[str]) -> None:
    await call.answer(str(call.memory.count(f"change {rest[0]}")))


async def _fading(call: Call, rest: list[str]) -> None:
    """`/fading/{status}/{first}/{last}/{name}`: that status from the first to the last of these visits."""
    status, first, last, name = rest
    gone = int(first) <= call.memory.count(f"fading {name}") <= int(last)
    await call.answer(f"<h1>{name}</h1>", status=int(status) if gone else 200)


async def _unasked(call: Call, _rest: list[str]) -> None:
    """Says that nothing has changed to those who did not ask."""
    await call.answer(status=304)


async def _gate(call: Call, rest: list[str]) -> None:
    """Leads to `/etag/{name}`, but not those who ask about another page than this."""
    if "if-none-match" in call.headers:
        raise ValueError("nothing was ever tagged here")
    await call.answer("<h1>elsewhere</h1>", ("Location", f"/etag/{rest[0]}"), status=302)


ROUTES: dict[str, Handler] = {
    "etag": _etag,
    "modified": _modified,
    "plain": _plain,
    "ticking": _ticking,
    "change": _change,
    "fading": _fading,
    "unasked": _unasked,
    "gate": _gate,
}
