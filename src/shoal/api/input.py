"""The input of a run: what somebody gave, as the model of the scraper has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shoal.errors import BadScraper

if TYPE_CHECKING:
    from pydantic import BaseModel


def parse_input(
    scraper: str, model: type[BaseModel] | None, raw: bytes | str | Mapping[str, Any] | None
) -> BaseModel | None:
    """The input, validated by the model (None if the scraper has none and none is given).

    Raises BadScraper with one sentence that names the field and the problem.
    """
    if model is None:
        if raw is None:
            return None
        raise BadScraper(f"Scraper {scraper!r} takes no input.")
    if raw is None:
        fields = ", ".join(model.model_fields)
        raise BadScraper(f"Scraper {scraper!r} needs an input with {fields}.")
    from pydantic import ValidationError  # noqa: PLC0415 - a scraper without input does not pay for pydantic

    try:
        if isinstance(raw, bytes | str):
            return model.model_validate_json(raw)
        return model.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in problem["loc"])
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        spot = f"the field {field!r}" if field else "it"
        raise BadScraper(f"The input of {scraper!r} is wrong: {spot}: {problem['msg']}{more}.") from None
