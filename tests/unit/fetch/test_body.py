"""Content encodings: what is legal is taken off, in whatever layers and spelling; what is not is refused by name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.fetch.body import MOST_LAYERS, _decoder
from shoal.fetch.protocol import FetchError

PUT_ON: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "x-gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "br": brotli.compress,
    "identity": lambda data: data,
    "": lambda data: data,
}
TEXT = b"milk and eggs " * 1000


def taken_off(named: str, body: bytes, step: int) -> bytes:
    decoder = _decoder(named)
    if decoder is None:
        return body
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    whole = b"".join(piece for block in pieces for piece in decoder.feed(block))
    assert decoder.complete
    return whole


@given(st.lists(st.sampled_from(list(PUT_ON)), max_size=5), st.sampled_from([1, 13, 10_000]))
def test_any_layers_come_off_in_the_order_in_which_they_were_put_on(names: list[str], step: int) -> None:
    body = TEXT
    for name in names:
        body = PUT_ON[name](body)
    real = [name for name in names if name not in ("", "identity")]
    if len(real) > MOST_LAYERS:
        with pytest.raises(FetchError, match="more than 3 content encodings"):
            _decoder(", ".join(names))
    else:
        assert taken_off(" ,".join(names).upper(), body, step) == TEXT


def test_an_encoding_that_nobody_knows_is_named() -> None:
    with pytest.raises(FetchError, match="unknown content encoding 'zipped'"):
        _decoder("gzip, zipped")


def test_a_layer_that_is_cut_short_is_not_complete() -> None:
    decoder = _decoder("gzip, deflate")
    assert decoder is not None
    whole = zlib.compress(gzip.compress(TEXT, mtime=0)[:-9])
    assert b"".join(decoder.feed(whole)).startswith(b"milk")
    assert not decoder.complete
