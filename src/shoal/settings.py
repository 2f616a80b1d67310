"""What an operator can set: `shoal.toml` < environment (`SHOAL_…`) < command line.

A setting that nobody set is absent (`model_fields_set`), which is not the same as one set to its default: an override
that is absent leaves the scraper as its author wrote it. docs/reference/settings.md is generated from these classes.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from shoal.clock import MOST_SECONDS, seconds_from
from shoal.errors import BadSettings
from shoal.exits import FORMS, parse_exit
from shoal.politeness import MAX_CRAWL_DELAY
from shoal.routes import MOST_PRIORITY, Route, check_conditions
from shoal.version import __version__

DEFAULT_ENGINE = "sqlite:///shoal.db"

MASK = "***"
_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:)[^\s]*@")
_QUERY_SECRET = re.compile(r"([?&;](?:ssl)?(?:password|passwd|pwd|token|secret|api_?key)=)[^&;#\s]+", re.IGNORECASE)


def mask_url(text: str) -> str:
    """The text with the password of its URL replaced, in the user part and in the query. Rather too much than less."""
    return _QUERY_SECRET.sub(rf"\g<1>{MASK}", _PASSWORD.sub(rf"\g<1>{MASK}@", text))


def _seconds(value: object) -> object:
    """`"30m"` as 1800.0; what is no text is left to the type."""
    return seconds_from(value) if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=MOST_SECONDS)]
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
    exits: str = Field(default="default", min_length=1, description="The pool of exits to leave by.")
    cache: Seconds | None = Field(
        default=None, gt=0, description="How long an answer is used again; absent = never. Unit: seconds."
    )
    every: Seconds | None = Field(
        default=None, gt=0, description="How long after a visit a page is visited again; absent = never. Unit: seconds."
    )
    adaptive: bool = Field(
        default=False, description="Whether a site that grows slow or fails is visited more slowly for a while."
    )


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


class RouteSettings(BaseModel):
    """`[[route]]`: rules for URLs, before those of the code; the first whose conditions all hold decides."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str | None = Field(
        default=None, description="Host name, subdomains included (with `:port` only that one), or a pattern with `*`."
    )
    path: str | None = Field(default=None, description="Pattern for the whole path; `*` stands for anything.")
    regex: str | None = Field(default=None, description="Regular expression, looked for anywhere in the URL.")
    scraper: str | None = Field(default=None, description="Only for the scraper of this name; absent = for all.")
    lane: str | None = Field(default=None, min_length=1, description="Where pages wait.")
    ttl: Seconds | None = Field(default=None, gt=0, description="Older tasks are not fetched any more. Unit: seconds.")
    priority: int | None = Field(
        default=None, ge=-MOST_PRIORITY, le=MOST_PRIORITY, description="Higher goes first within its site."
    )
    browser: bool | None = Field(default=None, description="Whether pages wait in the lane `browser`.")
    delay: Seconds | None = Field(
        default=None,
        description="Least time between two request starts of one slot, where that is longer than the scraper's. "
        "Only with `host` alone. Unit: seconds.",
    )
    exits: str | None = Field(default=None, min_length=1, description="The pool of exits to leave by.")

    @model_validator(mode="after")
    def _conditions_can_be_used(self) -> Self:
        check_conditions(self.route)
        return self

    @property
    def route(self) -> Route:
        """The rule itself."""
        return Route(**self.model_dump(exclude={"scraper"}))


class ServeSettings(BaseModel):
    """`[serve]`: how `shoal serve` takes jobs over HTTP."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen at; `0.0.0.0` = all of them.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen at; 0 = any that is free.")
    processes: int = Field(default=1, ge=1, le=256, description="Gateway processes that share the port.")
    workers: int = Field(default=1, ge=1, le=256, description="Worker processes that `--with-workers` starts.")
    results_ttl: Seconds = Field(
        default=3600.0, gt=0, description="How long the results of a job are kept after its end. Unit: seconds."
    )
    remember: Seconds = Field(
        default=86400.0,
        description="How long after that it is known that there was such a job (410, then 404). Unit: seconds.",
    )
    cors: list[str] = Field(
        default_factory=list, description="Origins of web pages that may use the API; `*` = all. Absent: none."
    )
    static: str | None = Field(
        default=None,
        min_length=1,
        description="Folder with files for browsers, such as a page that uses the API; its `index.html` is at `/`.",
    )
    max_body: int = Field(default=1024 * 1024, ge=1, description="Largest body of a request. Unit: bytes.")
    max_tasks: int = Field(default=10_000, ge=1, description="Pages that a job may begin with.")
    max_queue: int = Field(
        default=100_000, ge=1, description="Jobs of one scraper that have not ended; more are turned away with 503."
    )
    max_wait: Seconds = Field(default=60.0, description="Longest wait of one request for news. Unit: seconds.")
    max_waiting: int = Field(
        default=20_000, ge=0, description="Clients that one process lets wait at once; more are answered at once."
    )
    webhook_attempts: int = Field(
        default=30,
        ge=1,
        le=1000,
        description="How often a webhook is tried before it is a dead letter: at first seconds apart, then 5 minutes.",
    )
    start_timeout: Seconds = Field(
        default=10.0, gt=0, description="Most time for the `@start` of a scraper; then the job fails. Unit: seconds."
    )


class GuardSettings(BaseModel):
    """`[guard]`: what may be fetched for web clients besides the public internet."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow_networks: list[str] = Field(
        default_factory=list,
        description="Networks that the tasks of jobs may connect to although they are not public, as in "
        '`["10.0.0.0/8"]`. Set it for gateways and for workers alike.',
    )

    @field_validator("allow_networks")
    @classmethod
    def _networks_can_be_read(cls, value: list[str]) -> list[str]:
        for text in value:
            _network(text)
        return value

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks themselves."""
        return tuple(_network(text) for text in self.allow_networks)


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        pass
    try:
        near = str(ip_network(text, strict=False))
    except ValueError:
        raise ValueError(f'{text!r} is no network; one is written as "10.0.0.0/8" or "fd00::/8"') from None
    raise ValueError(f"{text!r} is an address in a network; write {near!r} for all of it")


class PoolSettings(BaseModel):
    """`[exits.POOL]`: the ways out of one pool. A scraper chooses its pool with `exits=`; `default` if it does not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ways: list[str] = Field(
        default_factory=list,
        description=f"Exits: {FORMS}.",
    )
    file: str | None = Field(
        default=None, min_length=1, description="A file with more of them, one a line; lines with `#` are comments."
    )
    cap: int = Field(default=0, ge=0, description="Most requests at once by each exit, over all sites; 0 = no limit.")

    @field_validator("ways")
    @classmethod
    def _ways_can_be_used(cls, value: list[str]) -> list[str]:
        for way in value:
            try:
                parse_exit(way)
            except BadSettings as error:
                raise ValueError(str(error).rstrip(".")) from None
        return value


class TorSettings(BaseModel):
    """`[tor]`: the Tor daemons that workers start for scrapers with `exits="tor"`, one for each worker process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(default="tor", min_length=1, description="The program: a name, or where it is.")
    folder: str | None = Field(
        default=None,
        min_length=1,
        description="Where daemons keep what they know, and with it the names of their exits; absent = "
        "`~/.local/state/shoal/tor`.",
    )
    new_identity_every: int = Field(
        default=0, ge=0, description="A new identity after so many requests; 0 = only where a site has had enough."
    )
    bootstrap_timeout: Seconds = Field(
        default=120.0, gt=0, description="Most time for a daemon to find its way into the network. Unit: seconds."
    )
    torrc: str = Field(
        default="", description="More lines for tor's own configuration; `%include FILE` among them names a file."
    )


class Settings(BaseSettings):
    """Everything that can be set. Building one reads nothing from outside; `shoal.settings_file.load` does."""

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
    cache_max_bytes: int = Field(
        default=4 * 1024 * 1024, ge=0, description="Largest body that is kept to be used again. Unit: bytes."
    )
    scrapers: dict[str, ScraperSettings] = Field(default_factory=dict, description="Overrides per scraper.")
    lanes: dict[str, LaneSettings] = Field(default_factory=dict, description="Rules per lane.")
    exits: dict[str, PoolSettings] = Field(default_factory=dict, description="Pools of exits.")
    tor: TorSettings = Field(default_factory=TorSettings, description="Tor daemons.")
    route: list[RouteSettings] = Field(default_factory=list, description="Rules per URL.")

    _source: str = PrivateAttr(default="the settings")

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
        """Values in, value out: the environment is read in one place, by `shoal.settings_file.load`."""
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
