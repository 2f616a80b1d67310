"""Small pages that take a parser minutes or gigabytes: quadratic in depth, attributes, options or formatting."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.testing.hostile.call import Call, Handler


def _numbered(tag: str, number: int) -> str:
    return "".join(f"<{tag} a{n}=1>" for n in range(number))


COMPLEX_PAGES: dict[str, Callable[[], str]] = {
    "nested": lambda: "<div>" * 160_000,
    "nested-and-closed": lambda: "<div>" * 80_000 + "</div>" * 80_000,
    "nested-among-idle-ends": lambda: "<div></span>" * 80_000,
    "nested-lists": lambda: "<UL><LI>" * 80_000,
    "attributes": lambda: f"<div {' '.join(f'a{n}=1' for n in range(100_000))}>",
    "bodies": lambda: _numbered("body", 50_000),
    "options": lambda: f"<select>{'<option>x' * 50_000}</select>",
    "formatting": lambda: f"<p>{_numbered('font', 6000)}{'<p>x' * 6000}",
}
"""For each `/complex/{kind}`, what makes it. Most take a parser a minute, the last one some 13 GB."""

UNSEEN_PAGES: dict[str, Callable[[], str]] = {
    "quoted-attributes": lambda: "<div " + " ".join(f"a{n}='<>'" for n in range(150_000)) + ">",
    "ends-out-of-reach": lambda: "<div><table><tr><td></div></table>" * 100_000,
}
"""The same for pages that look harmless from outside: `/complex/{kind}` too. They take a parser a minute."""


async def _complex(call: Call, rest: list[str]) -> None:
    (kind,) = rest
    pages = COMPLEX_PAGES | UNSEEN_PAGES
    if kind not in pages:
        raise ValueError(f"one of {', '.join(pages)}")
    await call.answer(pages[kind]())


ROUTES: dict[str, Handler] = {"complex": _complex}
