"""What `follow`, `download` and `links` were given, and one sentence for what belongs to another method."""

from __future__ import annotations

from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from shoal.api.reading.looks_like import why_no_selector, why_no_url
from shoal.errors import BadScraper


def check_is_selector(method: str, given: str) -> None:
    """Raises BadScraper for a text that looks like a URL or like XPath, naming the method it is for."""
    other = why_no_selector(given)
    if other is not None:
        raise _wrong_method(method, given, other)


def given_urls(method: str, given: object) -> Iterable[str]:
    """The URLs that a method was given: one, or an iterable of them. Raises BadScraper for all else."""
    if isinstance(given, str):
        if (other := why_no_url(given)) is not None:
            raise _wrong_method(method, given, other)
        return (given,)
    if isinstance(given, Iterable) and not _is_node(given):
        return (_given_url(method, each) for each in given)
    return (_given_url(method, given),)


def _given_url(method: str, given: object) -> str:
    if isinstance(given, str):
        return given
    if _is_node(given):
        raise BadScraper(f"page.{method} takes URLs; for a node there is page.{method.removesuffix('_url')}(node).")
    raise BadScraper(f"page.{method} takes a URL or an iterable of URLs, not {_a(given)}.")


def _is_node(thing: object) -> bool:
    return isinstance(thing, LexborNode) or hasattr(type(thing), "attrib")


def _wrong_method(method: str, given: str, other: str) -> BadScraper:
    """What to write instead, and how to insist."""
    shown = given if len(given) <= 120 else f"{given[:100]}…"
    plain = method.removesuffix("_url")
    if other == "XPath":
        instead = "page.xpath" if method == "links" else f"page.{plain}(page.xpath(…))"
        return BadScraper(f"page.{method} was given {shown!r}, which looks like XPath; use {instead}.")
    if method.endswith("_url"):
        return BadScraper(
            f"page.{method} takes URLs, and {shown!r} looks like a CSS selector; use page.{plain}({shown!r}), "
            f"or write './{shown}' if it is a URL."
        )
    instead = "page.follow_url" if method == "links" else f"page.{method}_url"
    insist = "" if method == "links" else f", or page.{method}(page.css(…)) if it is a selector"
    takes = "a CSS selector" if method == "links" else "a CSS selector or nodes"
    return BadScraper(f"page.{method} takes {takes}, and {shown!r} looks like a URL; use {instead}({shown!r}){insist}.")


def not_a_target(method: str, thing: object) -> BadScraper:
    """The complaint about what is neither selector nor node."""
    if isinstance(thing, str):
        return BadScraper(
            f"page.{method} takes one CSS selector, or nodes: a list with the text {thing!r} is for page.{method}_url, "
            "which takes URLs."
        )
    return BadScraper(f"page.{method} takes a CSS selector, a node or an iterable of nodes, not {_a(thing)}.")


def _a(thing: object) -> str:
    name = type(thing).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
