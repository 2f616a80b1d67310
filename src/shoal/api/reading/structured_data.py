"""Structured data that pages carry for machines: JSON-LD and OpenGraph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from selectolax.lexbor import LexborNode

JSONLD = 'script[type*="ld+json" i]'
OPENGRAPH = "meta[property][content], meta[name][content]"

MOST_OBJECTS = 1000
"""More objects of JSON-LD, or values of OpenGraph, than these are passed over."""

_WRAPPING = re.compile(r"\A\s*(?:<!--|<!\[CDATA\[|//\s*<!\[CDATA\[)|(?:-->|(?://\s*)?\]\]>)\s*\Z|;\s*\Z")


def read_jsonld(scripts: Iterable[str], of_type: str | None) -> list[dict[str, Any]]:
    """The objects of these scripts, in order; those of lists and of an `@graph` one by one."""
    objects: list[dict[str, Any]] = []
    for script in scripts:
        try:
            waiting = [json.loads(_WRAPPING.sub("", script), strict=False)]
        except (ValueError, RecursionError):
            continue
        while waiting and len(objects) < MOST_OBJECTS:
            value = waiting.pop()
            if isinstance(value, list):
                waiting += reversed(value)
            elif isinstance(value, dict):
                graph = value.get("@graph")
                if isinstance(graph, list):
                    waiting += reversed(graph)
                if not isinstance(graph, list) or "@type" in value:
                    objects.append(value)
    return [each for each in objects if of_type is None or has_type(each.get("@type"), of_type)]


def has_type(said: object, wanted: str) -> bool:
    """Whether a type, or one of several, is the wanted one: by its whole name, or by what is behind its last / or #."""
    types = said if isinstance(said, list) else [said]
    return any(isinstance(each, str) and wanted in (each, re.split("[/#]", each)[-1]) for each in types)


def read_opengraph(metas: Iterable[LexborNode]) -> dict[str, list[str]]:
    """Values by property, in order: what has a prefix as `og:` or `article:`, and `twitter:` under either attribute."""
    found: dict[str, list[str]] = {}
    for meta in metas:
        said = meta.attributes
        name = (said.get("property") or said.get("name") or "").strip().lower()
        if ":" not in name or not ("property" in said or name.startswith(("og:", "twitter:"))):
            continue
        found.setdefault(name, []).append((said.get("content") or "").strip())
        if sum(map(len, found.values())) >= MOST_OBJECTS:
            break
    return found
