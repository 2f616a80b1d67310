"""What an operator can set: `shoal.toml` < environment (`SHOAL_…`) < command line.

A setting that nobody set is absent (`model_fields_set`), which is not the same as one set to its default: an override
that is absent leaves the scraper as its author wrote it. docs/reference/settings.md is generated from these classes.
"""

from __future__ import annotations

import re
from typing import Any, Self

from pydantic import Field, PrivateAttr, SecretStr, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from shoal.config.sections import (
    GuardSettings,
    LaneSettings,
    LogFormat,
    LogLevel,
    PoolSettings,
    RouteSettings,
    ScraperSettings,
    Seconds,
    ServeSettings,
    TorSettings,
)
from shoal.core.exit_address import parse_exit
from shoal.core.politeness import MAX_BACKOFF, MAX_CRAWL_DELAY
from shoal.core.version import __version__

NO_FILE = "the settings"
"""What settings that come from no file are called."""

DEFAULT_ENGINE = "sqlite:///shoal.db"

MASK = "***"
_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:)[^\s]*@")
_QUERY_SECRET = re.compile(r"([?&;](?:ssl)?(?:password|passwd|pwd|token|secret|api_?key)=)[^&;#\s]+", re.IGNORECASE)


def mask_url(text: str) -> str:
    """The text with the password of its URL replaced, in the user part and in the query. Rather too much than less."""
    return _QUERY_SECRET.sub(rf"\g<1>{MASK}", _PASSWORD.sub(rf"\g<1>{MASK}@", text))


class Settings(BaseSettings):
    """Everything that can be set. Building one reads nothing from outside; `shoal.config.load.load` does."""

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
    secret_key: SecretStr | None = Field(
        default=None,
        description="What secrets in the store are sealed with: 32 characters or more, the same for all who share it; "
        "`file:PATH` or `keyring` = it is there; `new,old` while it is changed. Absent = in a file that is made beside "
        "the store when first needed.",
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
    log_format: LogFormat = Field(default="text", description="`text` for people, `json` for machines.")
    log_file: str | None = Field(
        default=None, min_length=1, description="File that log lines are added to, instead of stderr; absent = none."
    )
    events: str | None = Field(
        default=None,
        min_length=1,
        description="Folder where every call of the frontier and its answer is written down; absent = none is.",
    )
    serve: ServeSettings = Field(default_factory=ServeSettings, description="The gateway.")
    guard: GuardSettings = Field(default_factory=GuardSettings, description="What jobs may connect to.")
    audit: bool = Field(
        default=True, description="Whether every request is written to the log of its run, which `shoal audit` reads."
    )
    max_crawl_delay: Seconds = Field(
        default=MAX_CRAWL_DELAY / 1000,
        description="A Crawl-delay of a robots.txt that is longer is read as this one; 0 = none counts. Unit: seconds.",
    )
    max_backoff: Seconds = Field(
        default=MAX_BACKOFF / 1000,
        gt=0,
        description="A Retry-After that is longer is read as this one. Unit: seconds.",
    )
    cache_max_bytes: int = Field(
        default=4 * 1024 * 1024, ge=0, description="Largest body that is kept to be used again. Unit: bytes."
    )
    max_block: Seconds = Field(
        default=10.0,
        le=60,
        description="A handler that holds up its whole worker for so long is stopped, and its page has failed; "
        "0 = never. Unit: seconds.",
    )
    handler_timeout: Seconds = Field(
        default=30.0, gt=0, description="Most time for one page where handlers run isolated. Unit: seconds."
    )
    handler_memory: int = Field(
        default=512 * 2**20,
        ge=64 * 2**20,
        description="Most memory for the pages of one process where handlers run isolated. Unit: bytes.",
    )
    scrapers: dict[str, ScraperSettings] = Field(default_factory=dict, description="Overrides per scraper.")
    lanes: dict[str, LaneSettings] = Field(default_factory=dict, description="Rules per lane.")
    exits: dict[str, PoolSettings] = Field(default_factory=dict, description="Pools of exits.")
    tor: TorSettings = Field(default_factory=TorSettings, description="Tor daemons.")
    route: list[RouteSettings] = Field(default_factory=list, description="Rules per URL.")

    _source: str = PrivateAttr(default=NO_FILE)

    @property
    def source(self) -> str:
        """The file that they come from, as the user named it, for complaints."""
        return self._source

    def named(self, source: str) -> Self:
        """The same, with the name of their file."""
        self._source = source
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Values in, value out: the environment is read in one place, by `shoal.config.load.load`."""
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
        values = self.model_dump(mode="json", exclude={"scrapers", "lanes", "exits", "route"})
        values["engine"] = mask_url(self.engine)
        values["secret_key"] = None if self.secret_key is None else MASK
        values["scrapers"] = {name: each.model_dump(exclude_unset=True) for name, each in self.scrapers.items()}
        values["lanes"] = {name: each.model_dump(exclude_unset=True) for name, each in self.lanes.items()}
        values["exits"] = {
            name: {**each.model_dump(exclude_unset=True), "ways": [parse_exit(way).shown for way in each.ways]}
            for name, each in self.exits.items()
        }
        if self.tor.torrc:  # bridges and passwords of proxies may be among them
            values["tor"]["torrc"] = MASK
        values["route"] = [each.model_dump(exclude_unset=True) for each in self.route]
        return values

    def __repr__(self) -> str:
        return f"Settings({self.shown()!r})"

    __str__ = __repr__
