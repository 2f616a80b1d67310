"""A page kept as a file, to try handlers on it: its body as it is, and beside it (`NAME.json`) what else it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from multidict import CIMultiDict

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.core.url import without_credentials
from shoal.errors import UsageError

_SECRET = frozenset({"set-cookie", "set-cookie2"})


class SavedPage(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept beside a body. Cookies and credentials are not: such files lie in repositories."""

    url: str
    status: int
    headers: list[tuple[str, str]]
    requested: str
    data: Any = None
    group: str | None = None
    depth: int = 0


def description_of(path: Path) -> Path:
    """The file beside the body."""
    return path.with_name(f"{path.name}.json")


def save_page(page: Page, path: Path) -> None:
    """Write both files; those of that name are replaced."""
    kept = SavedPage(
        url=str(without_credentials(page.url)),
        status=page.status,
        headers=[(str(name), value) for name, value in page.headers.items() if name.lower() not in _SECRET],
        requested=str(without_credentials(page.request.url)),
        data=page.data,
        group=page.group,
        depth=page.depth,
    )
    path.write_bytes(page.body)
    description_of(path).write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")


def load_page(path: str | Path) -> Page:
    """The page that was saved there. Raises UsageError with one sentence if it cannot be read."""
    path = Path(path)
    try:
        body = path.read_bytes()
        kept = msgspec.json.decode(description_of(path).read_bytes(), type=SavedPage)
    except OSError as error:
        raise UsageError(f"The saved page {str(error.filename)!r} cannot be read: {error.strerror}.") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{str(description_of(path))!r} does not describe a saved page: {error}.") from None
    return Page(
        kept.url,
        body,
        status=kept.status,
        headers=CIMultiDict(kept.headers),
        request=Request(kept.requested, data=kept.data, group=kept.group),
        depth=kept.depth,
    )
