"""Requests that were right once: bytes of them changed, doubled, cut out or moved, each from its number alone."""

from __future__ import annotations

import random

PIECES = (
    b"\x00", b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"%00", b"%0A", b"%FF", b"\xff\xfe", b"/", b"//", b"..", b"?",
    b"Content-Length: 5\r\n", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Host: x\r\n", b"Expect: 100-continue\r\n", b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Connection: close\r\n",
    b"Range: bytes=0-\r\n", b"If-None-Match: *\r\n", b"Idempotency-Key: \xff\r\n", b"Accept: \x7f\r\n",
    b"Cookie: a=b\r\n", b"X: " + b"y" * 9_000 + b"\r\n", b"HTTP/1.0", b"HTTP/2.0", b"\x16\x03\x01", b"#", b"{",
    b"[" * 2_000, b'"', b"\\u0000", b"\\ud800", b"1e999", b"-", b"A" * 3_000,
)  # fmt: skip


class BrokenRequest:
    """The broken request with this number, made of one of those that are right: always the same bytes."""

    def __init__(self, number: int, right: tuple[bytes, ...]) -> None:
        self._dice = random.Random(number)
        self._right = right

    def __bytes__(self) -> bytes:
        dice = self._dice
        request = bytearray(dice.choice(self._right))
        for _ in range(dice.choice((0, 1, 1, 2, 4, 12))):
            self._break(request)
        return bytes(request)

    def _break(self, request: bytearray) -> None:
        dice = self._dice
        at = dice.randrange(len(request) + 1)
        match dice.randrange(6):
            case 0:
                request[at:at] = dice.choice(PIECES)
            case 1:
                del request[at : at + dice.choice((1, 2, 20))]
            case 2:
                request[at : at + 1] = bytes([dice.randrange(256)])
            case 3:
                line_end = request.find(b"\r\n", at)
                request[line_end + 2 : line_end + 2] = dice.choice(PIECES)
            case 4:
                request[at:at] = request[: dice.randrange(200)]
            case _:
                request[at : at + 4] = dice.choice(PIECES)
