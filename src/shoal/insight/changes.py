"""What has changed: a record that only grows, and the cursor that reads on in it.

Workers write it with their settlements, as notes of the stream `changes/SCRAPER`: one for each page that is new, has
changed or is gone since the scraper last saw it, in this run or any before.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from shoal.core.clock import Millis, Moment, iso, utc
from shoal.core.notes import Note
from shoal.core.url import without_credentials
from shoal.errors import UsageError
from shoal.frontier.contract.reader import Reader

KEPT: Millis = 90 * 24 * 3600 * 1000
"""How long a change is known."""

PAGE = 1000


class ChangeKind(StrEnum):
    """What happened to a page."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One change. `at`: when the page was seen like that. `digest`: what it says now, as a hash; None = it is gone."""

    kind: ChangeKind
    url: str
    at: Moment
    digest: str | None
    run_id: str


def stream_of(scraper: str) -> str:
    """The stream of notes that holds the changes of a scraper's pages."""
    return f"changes/{scraper}"


def note_of(scraper: str, change: Change) -> Note:
    """A change as it is kept."""
    return Note(stream_of(scraper), msgspec.json.encode(change), KEPT)


_change = msgspec.json.Decoder(Change)
_places = msgspec.json.Decoder(dict[str, int])


class PageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change as those who ask are told of it: of which scraper's page, and without the credentials of its URL.

    `kind`: `new`, `changed` or `gone`. `at`: when the page was seen like that. `hash`: of what it says
    now; None = it is gone. `run_id`: the run that saw it.
    """

    scraper: str
    kind: ChangeKind
    url: str
    at: datetime
    hash: str | None
    run_id: str


class Changes(msgspec.Struct, frozen=True):
    """Changes by scraper and in their order. `cursor` leads on, now or later; `more`: there may be more already."""

    changes: Sequence[PageChange]
    cursor: str
    more: bool

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        listed = [
            msgspec.structs.asdict(change) | {"kind": change.kind.value, "at": iso(change.at)}
            for change in self.changes
        ]
        return {"changes": listed, "cursor": self.cursor, "more": self.more}


def cursor_of(places: Mapping[str, int]) -> str:
    """How far each scraper's record has been read, as one word. Nothing in it is meant for people."""
    return urlsafe_b64encode(msgspec.json.encode(dict(sorted(places.items())))).decode().rstrip("=")


def places_of(cursor: str | None) -> dict[str, int]:
    """What a cursor says; None = from the beginning. Raises UsageError for what is none."""
    if cursor is None:
        return {}
    try:
        places = _places.decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if min(places.values(), default=0) >= 0:
            return places
    except (ValueError, msgspec.MsgspecError):
        pass
    raise UsageError(f"{cursor!r} is no cursor of `shoal changes`; leave it away to begin with the oldest change.")


async def changes_since(
    reader: Reader, scrapers: Sequence[str], cursor: str | None = None, run_id: str | None = None, most: int = PAGE
) -> Changes:
    """At most so many changes of these scrapers' pages after a cursor; if a run is named, those that it saw.

    Raises UsageError for what is no cursor.
    """
    places = places_of(cursor)
    found: list[PageChange] = []
    more = False
    for scraper in scrapers:
        while len(found) < most:
            asked = min(PAGE, most - len(found))
            page = await reader.notes(stream_of(scraper), places.get(scraper, 0), asked)
            places[scraper] = page.cursor
            changes = (_change.decode(body) for body in page.bodies)
            found += [_told(scraper, change) for change in changes if run_id in (None, change.run_id)]
            if len(page.bodies) < asked:
                break
        else:
            more = True
    return Changes(found, cursor_of(places), more)


def _told(scraper: str, change: Change) -> PageChange:
    return PageChange(
        scraper=scraper,
        kind=change.kind,
        url=without_credentials(change.url),
        at=utc(change.at),
        hash=change.digest,
        run_id=change.run_id,
    )
