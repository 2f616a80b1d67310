"""The sections of `shoal.toml`, each a model with its keys, units and defaults: one for each table."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from shoal.api.routes import MOST_PRIORITY, Route, check_conditions
from shoal.config.networks import network_from
from shoal.core.duration import MOST_SECONDS, seconds_from
from shoal.core.exit_address import FORMS, parse_exit
from shoal.errors import BadSettings


def _seconds(value: object) -> object:
    """`"30m"` as 1800.0; what is no text is left to the type."""
    if not isinstance(value, str):
        return value
    try:
        return seconds_from(value)
    except ValueError as error:
        raise ValueError(f"a length of time is {error}") from None


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=MOST_SECONDS)]
"""A length of time: a number of seconds, or a text with a unit (`500ms`, `30s`, `10m`, `6h`, `2d`)."""

Mode = Literal["single", "distributed"]
SiteKey = Literal["host", "domain"]
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
    attempts: int = Field(default=3, ge=1, le=1000, description="How often a task is tried before it is given up.")
    max_same_errors: int = Field(
        default=10,
        ge=0,
        description="A run whose first pages all fail in the handler in the same way, so many, is paused; 0 = never.",
    )
    timeout: Seconds = Field(default=30.0, gt=0, description="Most time for one request, in all. Unit: seconds.")
    mode: Mode = Field(
        default="single", description="`single`: `shoal run` does the work itself. `distributed`: it only enqueues."
    )
    obey_robots: bool = Field(default=True, description="Whether robots.txt is asked and obeyed.")
    site: SiteKey = Field(
        default="host", description="What the pace is kept by: each `host`, or the registrable `domain`."
    )
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
    max_rate_limits: int = Field(
        default=5,
        ge=1,
        le=1_000_000,
        description="A page limited so often in a row, while others of its site are answered, is given up.",
    )
    site_down_after: Seconds = Field(
        default=6 * 3600.0,
        description="A site that is down is waited for, and after so long given up; 0 = it is not. Unit: seconds.",
    )
    adaptive: bool = Field(
        default=False, description="Whether a site that grows slow or fails is visited more slowly for a while."
    )
    isolate: bool = Field(
        default=False,
        description="Whether pages are parsed and read in a process that is killed if it takes too long.",
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
    site: str | None = Field(
        default=None, description="Name of the site that these hosts are of, with one pace. Only with `host` alone."
    )

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
    without_keys: bool = Field(
        default=False,
        description="Whether to listen at more than this machine although there is no API key: anybody may submit.",
    )
    hosts: list[str] = Field(
        default_factory=list,
        description="Names by which this gateway is asked for, where there is no API key, besides its addresses and "
        "`localhost`; `*` = any. Requests for other names are refused: a web page may have made them.",
    )
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
    max_tasks: int = Field(
        default=10_000,
        ge=1,
        description="Pages that a job may have: more to begin with are an error, more that it comes to are refused.",
    )
    deadline: Seconds = Field(
        default=86400.0,
        description="A job that has not ended so long after it came is ended as failed; 0 = never. Unit: seconds.",
    )
    max_queue: int = Field(
        default=100_000, ge=1, description="Jobs of one scraper that have not ended; more are turned away with 503."
    )
    max_wait: Seconds = Field(default=60.0, description="Longest wait of one request for news. Unit: seconds.")
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
    isolate: bool = Field(
        default=True,
        description="Whether the pages of jobs are parsed and read in processes that can be killed, as with "
        "`isolate=True` on their scraper.",
    )

    @field_validator("allow_networks")
    @classmethod
    def _networks_can_be_read(cls, value: list[str]) -> list[str]:
        for text in value:
            network_from(text)
        return value

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks themselves."""
        return tuple(network_from(text) for text in self.allow_networks)


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
