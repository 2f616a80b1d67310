"""What an operator can set: `shoal.toml` < environment (`SHOAL_…`) < command line.

A setting that nobody set is absent (`model_fields_set`), which is not the same as one set to its default: an override
that is absent leaves the scraper as its author wrote it. docs/reference/settings.md is generated from these classes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from shoal import __version__

DEFAULT_ENGINE = "sqlite:///shoal.db"

MASK = "***"
_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:)[^\s]*@")
_QUERY_SECRET = re.compile(r"([?&;](?:ssl)?(?:password|passwd|pwd|token|secret|api_?key)=)[^&;#\s]+", re.IGNORECASE)


def mask_url(text: str) -> str:
    """The text with the password of its URL replaced, in the user part and in the query. Rather too much than less."""
    return _QUERY_SECRET.sub(rf"\g<1>{MASK}", _PASSWORD.sub(rf"\g<1>{MASK}@", text))


_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d|)\s*")


def _seconds(value: object) -> object:
    """`"30m"` as 1800.0; what is no text is left to the type."""
    if not isinstance(value, str):
        return value
    found = _DURATION.fullmatch(value)
    if found is None:
        raise ValueError('a length of time is a number of seconds, or a text such as "500ms", "30s", "10m", "6h", "2d"')
    return float(found[1]) * _UNITS[found[2]]


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=366 * 86400)]
"""A length of time: a number of seconds, or a text with a unit (`500ms`, `30s`, `10m`, `6h`, `2d`)."""

Mode = Literal["single", "distributed"]
Ack = Literal["manual", "auto"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]


class ScraperSettings(BaseModel):
    """`[scrapers.NAME]`: laid over the scraper of that name, without touching its code. Absent = as in the code."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    delay: Seconds = Field(default=1.0, description="Least time between two request starts of one slot. Unit: seconds.")
    site_delay: Seconds = Field(
        default=0.0,
        description="Least time between two request starts of one site over all its exits; 0 = none. Unit: seconds.",
    )
    concurrency: int = Field(default=1, ge=1, le=10_000, description="Most requests in flight per slot.")
    retries: int = Field(default=3, ge=0, le=1000, description="How often a task is tried before it is given up.")
    timeout: Seconds = Field(default=30.0, gt=0, description="Most time for one request, in all. Unit: seconds.")
    mode: Mode = Field(
        default="single", description="`single`: `shoal run` does the work itself. `distributed`: it only enqueues."
    )
    obey_robots: bool = Field(default=True, description="Whether robots.txt is asked and obeyed.")
    lane: str | None = Field(
        default=None, min_length=1, description="Where pages wait; absent = `browser` for a browser's, else `bulk`."
    )
    max_depth: int | None = Field(
        default=None, ge=0, description="Links are followed this far from a start URL; absent = without limit."
    )
    results_ttl: Seconds | None = Field(
        default=None, gt=0, description="How long items are kept after the run; absent = until deleted. Unit: seconds."
    )
    max_bytes: int = Field(default=32 * 1024 * 1024, ge=1, description="Largest body that is read. Unit: bytes.")


class LaneSettings(BaseModel):
    """`[lanes.NAME]`: how a lane treats its tasks, for runs that are created from now on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ttl: Seconds | None = Field(
        default=None, gt=0, description="A task older than this is not fetched any more; absent = never. Unit: seconds."
    )
    ack: Ack = Field(
        default="manual",
        description="`manual`: a task ends when its work is done. `auto`: claiming settles, at most once.",
    )


class Settings(BaseSettings):
    """Everything that can be set. Building one reads nothing from outside; `shoal.cli.settings_file.load` does."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix="SHOAL_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
    )

    engine: str = Field(
        default=DEFAULT_ENGINE,
        description="Where everything is kept, as a URL. A relative file is looked for in the current folder.",
    )
    user_agent: str | None = Field(
        default=None, description="What to call ourselves to sites; absent = `Shoal/VERSION`. `contact` is added to it."
    )
    contact: str | None = Field(
        default=None,
        description="E-mail address or URL where a site's owner can reach you. Goes into the User-Agent.",
    )
    concurrency: int = Field(
        default=64, ge=1, le=10_000, description="Most requests in flight per worker process, over all sites."
    )
    log_level: LogLevel = Field(default="warning", description="Least important kind of message that is logged.")
    log_format: LogFormat = Field(default="text", description="`text` for people, `json` for machines; on stderr.")
    scrapers: dict[str, ScraperSettings] = Field(default_factory=dict, description="Overrides per scraper.")
    lanes: dict[str, LaneSettings] = Field(default_factory=dict, description="Rules per lane.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Values in, value out: the environment is read in one place, by `shoal.cli.settings_file.load`."""
        return (init_settings,)

    @field_validator("engine")
    @classmethod
    def _engine_is_a_url(cls, value: str) -> str:
        if "://" not in value:
            raise ValueError(f"an engine is a URL, such as {DEFAULT_ENGINE}")
        return value

    @field_validator("contact")
    @classmethod
    def _contact_can_be_reached(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.removeprefix("mailto:")
        if re.fullmatch(r"https?://[^\s()]+\.[^\s()]+|[^\s@()]+@[^\s@()]+\.[^\s@()]+", value) is None:
            raise ValueError("a contact is an e-mail address or an http(s) URL")
        return value

    @field_validator("user_agent")
    @classmethod
    def _user_agent_is_a_header(cls, value: str | None) -> str | None:
        if value is not None and (not value.strip() or not value.isascii() or not value.isprintable()):
            raise ValueError("a User-Agent is one line of plain ASCII text")
        return value

    @property
    def agent(self) -> str:
        """The User-Agent that is sent: the name, and in brackets how to reach whoever runs it, if known."""
        name = self.user_agent or f"Shoal/{__version__}"
        if self.contact is None or self.contact in name:
            return name
        where = self.contact if "://" in self.contact else f"mailto:{self.contact}"
        return f"{name} (+{where})"

    def overrides(self, scraper: str) -> dict[str, Any]:
        """What is set for this scraper, and nothing that is not."""
        chosen = self.scrapers.get(scraper)
        return {} if chosen is None else chosen.model_dump(exclude_unset=True)

    def shown(self) -> dict[str, Any]:
        """All that is set or has a default, as JSON can hold it, with passwords masked."""
        values = self.model_dump(mode="json", exclude={"scrapers", "lanes"})
        values["engine"] = mask_url(self.engine)
        values["scrapers"] = {name: each.model_dump(exclude_unset=True) for name, each in self.scrapers.items()}
        values["lanes"] = {name: each.model_dump(exclude_unset=True) for name, each in self.lanes.items()}
        return values

    def __repr__(self) -> str:
        return f"Settings({self.shown()!r})"

    __str__ = __repr__
