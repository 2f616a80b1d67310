"""Bounds on HTML before it is parsed: what would take a parser minutes or gigabytes, found in linear time. Pure.

HTML5 parsers are quadratic in how deep elements are nested, in the attributes of one element, in the options of one
<select>, and in formatting elements that are left open (each paragraph after them repeats them all: 40 kB of <font>
take 1.5 GB). A scan by counting sees pages that are so by accident or by a plain attack. Who studies this file can
write one that it does not see: for those there are the watchdog of the loop and `isolate`.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate

from selectolax.lexbor import LexborHTMLParser

from shoal.errors import PageTooComplex

SMALL = 8192
"""Bytes up to which a page costs little, whatever is in it."""

MOST_STEPS = 200_000_000
"""Of the parser, on its way through open elements: tags times depth. Takes it some tenths of a second."""

MOST_COPIES = 500_000
"""Elements that the parser may make by itself, by repeating those left open: tags times open ones. Some 200 MB."""

MOST_ATTRIBUTES = 4000
"""Of one element."""

MOST_OPTIONS = 8000
"""Of one <select>."""

_MANY_ATTRIBUTES = 3 * MOST_ATTRIBUTES
"""Bytes that so many attributes take at least."""

_ATTRIBUTE = re.compile(rb"[\s/]+[^\s/>=]")
_ELEMENT = re.compile(rb"<[a-z]")
_SCRIPT = re.compile(rb"<script(?=[\s/>])")
_TAG = re.compile(rb"</?[a-z][a-z0-9]*")
_FORMATTING = rb"[bcefistu](?:|ig|ode|m|ont|mall|t|trike|trong)"
"""Elements that are opened again in the next paragraph: b, big, code, em, font, i, s, small, strike, strong, tt, u (and
what is nearly called so). Of `a` and `nobr` there is only ever one, and three of a kind that has no attributes."""
_WITH_ATTRIBUTES = re.compile(rb"<" + _FORMATTING + rb"[\s/]")
_OPEN_OR_END = re.compile(rb"</?" + _FORMATTING + rb"(?=[\s/>])")

_SHALLOW = frozenset(
    b"<area <base <br <col <embed <hr <img <input <link <meta <param <source <track <wbr "
    b"<caption <colgroup <dd <dt <li <optgroup <option <p <rb <rp <rt <rtc <tbody <td <tfoot <th <thead <tr "
    b"</caption </colgroup </dd </dt </li </optgroup </option </p </rb </rp </rt </rtc </tbody </td </tfoot </th "
    b"</thead </tr".split()
)
"""Tags of elements that have no content, or that the next one of their kind ends."""


def parse_html(html: bytes | str) -> LexborHTMLParser:
    """The page as a tree. Raises PageTooComplex instead of taking very long."""
    check_bounds(html)
    return LexborHTMLParser(html)


def check_bounds(html: bytes | str) -> None:
    """Raises PageTooComplex for what would take a parser very long. Costs little beside parsing it."""
    if len(html) <= SMALL:
        return
    body = html if isinstance(html, bytes) else html.encode("utf-8", "replace")
    tags, long = body.count(b"<"), _has_a_long_tag(body)
    if tags * tags <= MOST_COPIES and not long:
        return
    body = body.lower()
    if long:
        _check_attributes(_without_scripts(body))
    if len(_WITH_ATTRIBUTES.findall(body)) * tags > MOST_COPIES:
        left_open = _most_open(_OPEN_OR_END.findall(body))
        if left_open * tags > MOST_COPIES:
            raise PageTooComplex(f"{left_open} formatting elements are left open, in a page of {tags} tags")
    if tags > MOST_ATTRIBUTES:
        _check_repetitions(body)
    if tags * tags > MOST_STEPS:
        depth = _most_open(_TAG.findall(_without_scripts(body)))
        if depth * tags > MOST_STEPS:
            raise PageTooComplex(f"elements are nested {depth} deep, in a page of {tags} tags")


def _has_a_long_tag(body: bytes) -> bool:
    """Whether there is so much without a `>` that it may be an element with many attributes. Goes in large steps."""
    at = 0
    while at + _MANY_ATTRIBUTES < len(body):
        at = body.rfind(b">", at, at + _MANY_ATTRIBUTES) + 1
        if not at:
            return True
    return False


def _check_attributes(body: bytes) -> None:
    """What stands between two `>` ends with an element, which begins at the first `<`."""
    for part in body.split(b">"):
        element = _ELEMENT.search(part) if len(part) > _MANY_ATTRIBUTES else None
        if element is not None and (most := len(_ATTRIBUTE.findall(part, element.start()))) > MOST_ATTRIBUTES:
            raise PageTooComplex(f"an element has {most} attributes, and {MOST_ATTRIBUTES} are read")


def _check_repetitions(body: bytes) -> None:
    """Attributes of a second <body> are added to the first; each <option> looks at those before it."""
    for element in (b"<html", b"<body"):
        if (most := body.count(element)) > MOST_ATTRIBUTES:
            raise PageTooComplex(f"{element.decode()}> is opened {most} times, and {MOST_ATTRIBUTES} are read")
    if body.count(b"<option") <= MOST_OPTIONS:
        return
    if (most := max(part.count(b"<option") for part in body.split(b"<select"))) > MOST_OPTIONS:
        raise PageTooComplex(f"a <select> has {most} options, and {MOST_OPTIONS} are read")


def _without_scripts(body: bytes) -> bytes:
    """What stands in scripts looks like tags and is none."""
    first, *rest = _SCRIPT.split(body)
    return first + b"".join(part.partition(b"</script")[2] or part for part in rest)


def _most_open(tags: list[bytes]) -> int:
    """How many elements are open at the same time, at most: begun and not ended.

    An end of what was never begun ends nothing: as it is not known where that stands, it counts as one more that is
    open. All of it in C: a loop over tags would take longer than the parser.
    """
    if not tags:
        return 0
    counts = Counter(tags)
    weights = {tag: 0 if tag in _SHALLOW else -1 if tag[1:2] == b"/" else 1 for tag in counts}
    idle_ends = sum(max(0, n - counts[b"<" + tag[2:]]) for tag, n in counts.items() if weights[tag] < 0)
    open_now = list(accumulate(map(weights.__getitem__, tags), initial=0))
    return max(open_now) - min(open_now) + idle_ends
