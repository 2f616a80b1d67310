"""The page at `/docs`: the OpenAPI document for people. One page without scripts, and without a word to other hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""What browsers may do with the page: show it."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
h2 {{ font: 600 1rem ui-monospace, monospace; margin: 2rem 0 0; border-top: 1px solid #8884; padding-top: 1rem }}
pre {{ background: #8881; padding: .75rem; overflow-x: auto }}
table {{ border-collapse: collapse }}
td {{ padding: .1rem 1rem .1rem 0; vertical-align: top }}
:root {{ color-scheme: light dark }}
</style>
<h1>{title} {version}</h1>
<p>{summary} For programs: <a href="openapi.json">openapi.json</a>.</p>
{operations}
</html>
"""


def handbook(document: Mapping[str, Any]) -> str:
    """The page for an OpenAPI document."""
    about = document["info"]
    words = {name: escape(str(about.get(name, ""))) for name in ("title", "version", "summary")}
    return _PAGE.format(**words, operations="\n".join(_operations(document)))


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"<h2>{method.upper()} {escape(path)}</h2>"
            yield f"<p>{escape(operation.get('description') or operation.get('summary', ''))}</p>"
            yield from _table(
                (parameter["name"], parameter["in"], parameter.get("description", ""))
                for parameter in operation.get("parameters", ())
            )
            yield from _body(document, operation.get("requestBody"))
            yield from _table((status, each["description"]) for status, each in operation["responses"].items())


def _body(document: Mapping[str, Any], body: Mapping[str, Any] | None) -> Iterator[str]:
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        shown = document["components"]["schemas"].get(name, schema)
        yield f"<pre>{escape(json.dumps(shown, indent=2, ensure_ascii=False))}</pre>"


def _table(rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    lines = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    if lines:
        yield f"<table>{''.join(lines)}</table>"
