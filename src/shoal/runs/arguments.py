"""`-a name=value`: the input of a run, said word by word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel


def input_with(given: bytes | None, arguments: Sequence[str], model: type[BaseModel] | None) -> bytes | None:
    """The input of a run: that of `--input`, with each `name=value` laid over it. None = neither was given.

    A value is text, which the model makes a number, a date or whatever it wants; what begins like a JSON list or object
    is one. A name that is given several times, or whose field wants a list, is a list. Raises UsageError.
    """
    if not arguments:
        return given
    try:
        values = msgspec.json.decode(given, type=dict[str, Any]) if given is not None else {}
    except msgspec.DecodeError as error:
        raise UsageError(f"With -a, the input must be a JSON object: {error}.") from None
    said: dict[str, list[Any]] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{argument!r} is no argument; write it as -a name=value.")
        said.setdefault(name.strip(), []).append(_value(value))
    lists = _lists_of(model)
    for name, found in said.items():
        one = found[0]
        values[name] = one if len(found) == 1 and (name not in lists or isinstance(one, list)) else found
    return msgspec.json.encode(values)


def _value(text: str) -> Any:
    if text[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            pass
    return text


def _lists_of(model: type[BaseModel] | None) -> frozenset[str]:
    """The fields that want a list."""
    if model is None:
        return frozenset()
    fields = model.model_json_schema().get("properties", {})
    return frozenset(name for name, schema in fields.items() if _is_list(schema))


def _is_list(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "array" or any(map(_is_list, schema.get("anyOf", ())))
