"""Watching requests: what observers are told, log lines, and an archive that another reader can read."""

from __future__ import annotations

import errno
import os
from io import BytesIO
from pathlib import Path

import pytest
import structlog
from multidict import CIMultiDict, CIMultiDictProxy
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from shoal.core.clock import SystemClock
from shoal.core.outcome import Blame
from shoal.errors import EngineError
from shoal.fetch.http import HttpFetcher
from shoal.fetch.observing.observed_fetcher import ObservedFetcher, ObservedRequest
from shoal.fetch.observing.request_log import RequestLines
from shoal.fetch.observing.warc_archive import WarcArchive, opened_archive
from shoal.fetch.protocol import Fetch, FetchError, Response
from shoal.testing.hostile_site import HostileSite
from support.fetching import open_gate


class Noted:
    def __init__(self) -> None:
        self.made: list[ObservedRequest] = []

    async def observe(self, made: ObservedRequest) -> None:
        self.made.append(made)


@pytest.mark.parametrize("first_byte", [True, False])
async def test_an_answer_is_handed_on_as_it_is_and_its_phases_are_known(
    fetcher: HttpFetcher, site: HostileSite, first_byte: bool
) -> None:
    site.pages["/page"] = b"<p>hello"
    noted = Noted()
    watched = ObservedFetcher(fetcher, [noted], SystemClock(), first_byte=first_byte)
    response = await watched.fetch(Fetch(site.url("/page")), open_gate)
    assert response == await fetcher.fetch(Fetch(site.url("/page")), open_gate)
    [made] = noted.made
    assert (made.response, made.error, made.fetch.url) == (response, None, site.url("/page"))
    assert made.connected is not None
    assert 0 <= made.connected <= made.took
    assert (made.first_byte is not None) is first_byte


async def test_a_failure_is_told_and_comes_through(fetcher: HttpFetcher) -> None:
    noted = Noted()
    watched = ObservedFetcher(fetcher, [noted], SystemClock())
    with pytest.raises(FetchError) as caught:
        await watched.fetch(Fetch("http://127.0.0.1:1/"), open_gate)
    [made] = noted.made
    assert (made.response, made.error, made.connected) == (None, caught.value, None)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _made(url: str, body: bytes, headers: dict[str, str] | None = None) -> ObservedRequest:
    response = Response(url, 200, CIMultiDictProxy(CIMultiDict(headers or {})), body, 3)
    return ObservedRequest(Fetch(url), response, None, 1_700_000_000_000, 12.0)


async def test_each_request_is_one_line_without_credentials() -> None:
    with structlog.testing.capture_logs() as lines:
        await RequestLines().observe(_made("https://me:hidden@shop.example/", b"abc"))
        error = FetchError("connection refused", Blame.HOST)
        await RequestLines().observe(ObservedRequest(Fetch("https://shop.example/"), None, error, 0, 5.0))
    assert [line["event"] for line in lines] == ["request.answered", "request.failed"]
    assert (lines[0]["status"], lines[0]["bytes"], lines[0]["seconds"]) == (200, 3, 0.012)
    assert lines[1]["reason"] == "connection refused"
    assert "hidden" not in str(lines)


async def test_an_archive_is_read_back_by_another_reader(tmp_path: Path) -> None:
    path = tmp_path / "answers.warc.gz"
    for number in (1, 2):  # the second does not touch the first
        with opened_archive(path) as archive:
            url = f"https://me:hidden@shop.example/{number}"
            await archive.observe(_made(url, b"<p>hello", {"Content-Encoding": "br", "Content-Length": "3"}))
    assert names_in(tmp_path) == ["answers-2.warc.gz", "answers.warc.gz"]
    with path.open("rb") as stream:
        records = [
            (
                each.rec_type,
                each.rec_headers.get_header("WARC-Target-URI"),
                each.content_stream().read(),
                each.http_headers,
            )
            for each in ArchiveIterator(stream, check_digests="raise")
        ]
    assert [kind for kind, *_ in records] == ["warcinfo", "response"]
    _, target, body, headers = records[1]
    assert (target, body) == ("https://shop.example/1", b"<p>hello")
    assert headers.get_statuscode() == "200"
    assert (headers.get_header("Content-Length"), headers.get_header("X-Archive-Orig-Content-Encoding")) == ("8", "br")


async def test_an_answer_is_in_the_archive_before_it_is_handed_on(tmp_path: Path) -> None:
    with opened_archive(tmp_path / "a.warc.gz") as archive:
        await archive.observe(_made("https://shop.example/", b"x" * 100))
        with (tmp_path / "a.warc.gz").open("rb") as stream:  # as whoever reads it after a kill -9
            assert [each.rec_type for each in ArchiveIterator(stream)] == ["warcinfo", "response"]


async def test_a_full_disk_ends_the_work_instead_of_leaving_answers_out() -> None:
    class Full(BytesIO):
        name = "/somewhere/a.warc.gz"

        def flush(self) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(EngineError, match="cannot be written: No space left on device"):
        await WarcArchive(Full()).observe(_made("https://shop.example/", b"x"))
