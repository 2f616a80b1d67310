"""Compressed streams by the last suffix of a file: `.gz`, `.zst`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import BinaryIO, cast


class Compression(StrEnum):
    """The value is also the suffix, without its dot. What is appended is a member (a frame) of its own."""

    GZIP = "gz"
    ZSTANDARD = "zst"


NEEDS = {Compression.ZSTANDARD: ("zstandard", "export")}
"""Library and extra."""


@contextmanager
def compressed(stream: BinaryIO, how: Compression | None) -> Iterator[BinaryIO]:
    """What is written here goes to the stream compressed, and is complete at the end of the block."""
    match how:
        case None:
            yield stream
        case Compression.GZIP:
            with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
                yield cast("BinaryIO", packed)
        case Compression.ZSTANDARD:
            import zstandard  # noqa: PLC0415 - an extra

            with zstandard.ZstdCompressor().stream_writer(stream, closefd=False) as frames:
                yield cast("BinaryIO", frames)


def decompressed(stream: BinaryIO, how: Compression | None) -> BinaryIO:
    """The content of such a stream."""
    match how:
        case None:
            return stream
        case Compression.GZIP:
            return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
        case Compression.ZSTANDARD:
            import zstandard  # noqa: PLC0415 - an extra

            return cast("BinaryIO", zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
