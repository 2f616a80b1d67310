"""JSON by path: the body of a page or the text of a script, and JMESPath into it (`a.b[*].c`)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from shoal.errors import BadScraper


def json_text(text: str, where: str) -> Any:
    """A text as JSON. Knows NaN and lone surrogates. Raises ValueError with the start of the text if it is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{where} is JSON that is nested too deeply to be read.") from None
    except ValueError as error:
        start = text.strip()[:80] or "(nothing)"
        raise ValueError(f"{where} is not JSON ({error}); it begins with {start!r}.") from None


def search_json(value: Any, path: str | None) -> Any:
    """What a JMESPath finds in a value; None = nothing. Without a path, the value.

    Raises BadScraper for what is no path, and ValueError where one of its functions cannot do with what is there.
    """
    if path is None:
        return value
    from jmespath.exceptions import JMESPathError  # type: ignore[import-untyped] # noqa: PLC0415 - see below

    try:
        return _compiled(path).search(value)
    except (JMESPathError, ArithmeticError) as error:
        raise ValueError(f"The JSON is not such that {path!r} can be found in it: {error}.") from None


@lru_cache(maxsize=1024)
def _compiled(path: str) -> Any:
    import jmespath  # type: ignore[import-untyped] # noqa: PLC0415 - most scrapers never look into JSON by path

    try:
        return jmespath.compile(path)
    except (jmespath.exceptions.JMESPathError, TypeError, AttributeError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadScraper(f"{path!r} is not a path into JSON, such as 'a.b[*].c' (JMESPath): {said}") from None
