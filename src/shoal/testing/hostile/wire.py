"""Connections that break, drip, never end or lie about what they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.testing.hostile.call import Call, Handler

_TEXT = ("Content-Type", "text/html; charset=utf-8")
_PIECE = b"<p>and so it goes on</p>\n" * 640  # about 16 kB
TRUE_BODY = b"<p>just these bytes</p>"
"""What `/length/...` really sends."""


async def _drop(call: Call, _rest: list[str]) -> None:
    call.hang_up()


async def _reset(call: Call, _rest: list[str]) -> None:
    call.reset()


async def _half(call: Call, _rest: list[str]) -> None:
    call.hang_up()
    call.begin(200, _TEXT, ("Transfer-Encoding", "chunked"))
    await call.send(b"400\r\n" + TRUE_BODY)


async def _drip(call: Call, rest: list[str]) -> None:
    size, interval = int(rest[0]), int(rest[1]) / 1000
    call.begin(200, _TEXT, ("Content-Length", str(size)))
    for _ in range(size):
        await call.send(b".")
        await call.pause(interval)


async def _endless(call: Call, _rest: list[str]) -> None:
    call.hang_up()
    call.begin(200, _TEXT, ("Transfer-Encoding", "chunked"))
    piece = b"%x\r\n%b\r\n" % (len(_PIECE), _PIECE)
    while True:
        await call.send(piece)


async def _headers(call: Call, rest: list[str]) -> None:
    if rest != ["endless"]:
        raise ValueError("only /headers/endless")
    call.hang_up()
    call.status = 200
    await call.send(b"HTTP/1.1 200 OK\r\n")
    line = 0
    while True:
        await call.send(b"".join(b"X-Filler-%d: %b\r\n" % (line + more, b"f" * 100) for more in range(100)))
        line += 100


async def _length(call: Call, rest: list[str]) -> None:
    match rest:
        case ["long"]:
            fields = [("Content-Length", str(len(TRUE_BODY) + 1000))]
            call.hang_up()
        case ["short"]:  # the connection stays: what is left over stands before the next answer
            fields = [("Content-Length", "7")]
        case ["garbage"]:
            fields = [("Content-Length", "banana")]
            call.hang_up()
        case ["negative"]:
            fields = [("Content-Length", "-1")]
            call.hang_up()
        case ["twice"]:
            fields = [("Content-Length", str(len(TRUE_BODY))), ("Content-Length", "7")]
            call.hang_up()
        case _:
            raise ValueError("long, short, garbage, negative or twice")
    call.begin(200, _TEXT, *fields)
    await call.send(TRUE_BODY)


async def _chunked(call: Call, rest: list[str]) -> None:
    match rest:
        case ["good"]:
            end = b"0\r\n\r\n"
        case ["bad"]:
            end = b"zebra\r\nnot a size\r\n0\r\n\r\n"
            call.hang_up()
        case _:
            raise ValueError("good or bad")
    call.begin(200, _TEXT, ("Transfer-Encoding", "chunked"))
    await call.send(b"%x\r\n%b\r\n%b" % (len(TRUE_BODY), TRUE_BODY, end))


async def _garbage(call: Call, _rest: list[str]) -> None:
    call.hang_up()
    await call.send(b"\x00\x01\x02 220 mail.example ESMTP\r\n\xff\xfe\xfd\r\n\r\n")


ROUTES: dict[str, Handler] = {
    "drop": _drop,
    "reset": _reset,
    "half": _half,
    "drip": _drip,
    "endless": _endless,
    "headers": _headers,
    "length": _length,
    "chunked": _chunked,
    "garbage": _garbage,
}
