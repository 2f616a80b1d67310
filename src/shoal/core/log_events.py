"""The vocabulary of the structured log: each event once, with its level, a sentence for people, and its keys.

Names are `component.verb`. A call site names the event and gives its keys:

    log.warning(log_events.STORE_RECOVERED, after="1.2 s", attempts=3)

Machines search for the name, which stays; people read the sentence, which may be worded better any day.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Literal

Level = Literal["debug", "info", "warning", "error"]


class LogEvent(str):
    """The name of an event, which is all that is logged of it; what is known about it beside.

    `keys` are all that a line may have. One whose value is None is left out of the line.
    """

    __slots__ = ("keys", "level", "sentence")

    keys: tuple[str, ...]
    level: Level
    sentence: str

    def __new__(cls, name: str, level: Level, sentence: str, *keys: str) -> LogEvent:
        event = super().__new__(cls, name)
        event.level, event.sentence, event.keys = level, sentence, keys
        return event


STORE_UNANSWERED = LogEvent(
    "store.unanswered",
    "warning",
    "the store does not answer; trying again",
    *("doing", "attempt", "next_try", "reason"),
)
STORE_RECOVERED = LogEvent("store.recovered", "warning", "the store answers again", "after", "attempts")
STORE_EXPOSED = LogEvent(
    "store.exposed", "warning", "anybody on this machine may replace the files of the store", "folder"
)
STORE_MAY_LOSE = LogEvent("store.may_lose", "warning", "the store may lose what it was told", "reason")

LEASE_LOST = LogEvent("lease.lost", "warning", "lease lost; its work is stopped", "url")
LEASE_RECLAIMED = LogEvent("lease.reclaimed", "warning", "brought back what lost workers held", "returned", "dead")
LEASE_ABANDONED = LogEvent("lease.abandoned", "warning", "leases could not be given back; they will run out", "reason")
SETTLEMENT_REPEATED = LogEvent(
    "settlement.repeated",
    "info",
    "settlements that were sent again had been stored already, or their lease is over",
    "count",
)
SETTLEMENT_REFUSED = LogEvent(
    "settlement.refused", "warning", "settlements came too late and were thrown away", "count"
)
SETTLEMENT_UNSTORABLE = LogEvent(
    "settlement.unstorable",
    "error",
    "the store does not hold what came of a page; its task is a dead letter",
    *("run", "task", "reason"),
)

TASK_DEAD = LogEvent(
    "task.dead",
    "warning",
    "dead letter",
    *("scraper", "url", "handler", "reason", "where", "blame", "exception"),
)
TASK_RETRIED = LogEvent(
    "task.retried",
    "warning",
    "will retry",
    *("scraper", "url", "handler", "reason", "where", "attempt", "seconds", "exception"),
)
TASK_SNOOZED = LogEvent("task.snoozed", "warning", "backing off", "site", "url", "reason", "seconds")
TASK_DROPPED = LogEvent("task.dropped", "info", "dropped", "scraper", "url", "handler", "reason")
TASK_BROKE = LogEvent("task.broke", "error", "this should not have happened", "scraper", "url")

REQUEST_ANSWERED = LogEvent(
    "request.answered", "info", "answered", *("status", "method", "url", "bytes", "seconds", "exit")
)
REQUEST_FAILED = LogEvent("request.failed", "info", "not answered", *("reason", "method", "url", "seconds", "exit"))

BACKGROUND_FAILED = LogEvent(
    "background.failed",
    "error",
    "a background loop failed, which should not have happened; it is run again",
    *("loop", "attempt", "next_try"),
)
LOOP_BLOCKED = LogEvent(
    "loop.blocked",
    "warning",
    "a handler blocks everything else; give it `thread=True`, or let it await",
    *("scraper", "handler", "url", "where", "seconds"),
)
LOOP_LOST = LogEvent(
    "loop.lost",
    "error",
    "a handler that cannot be stopped holds up everything else; this process ends, and what it held is not lost",
    *("scraper", "handler", "url", "where", "seconds"),
)
ISOLATION_MISSING = LogEvent(
    "isolation.missing",
    "warning",
    "jobs of this scraper are read in the worker itself: no other process could load it; make it at the top of a file",
    "scraper",
)
WORKER_OFFLINE = LogEvent(
    "worker.offline",
    "warning",
    "no site can be reached: this worker is offline; it gives back what it has, and looks again",
    *("sites", "reason", "seconds"),
)
WORKER_ONLINE = LogEvent("worker.online", "warning", "sites can be reached again", "after")

CODE_MISSING = LogEvent(
    "code.missing", "warning", "left for workers that have the code of this scraper", "scraper", "tasks"
)
LINK_REFUSED = LogEvent("link.refused", "debug", "link refused", "scraper", "url", "reason")
LANE_UNSTAFFED = LogEvent(
    "lane.unstaffed",
    "warning",
    "refused on this page, and wherever else this run meets it",
    *("scraper", "run", "url", "reason"),
)
RUN_REFUSED_URLS = LogEvent("run.refused_urls", "warning", "URLs refused", "scraper", "run", "count", "first")
RUN_HALTED = LogEvent(
    "run.halted",
    "error",
    "the first pages all failed in the handler in the same way; the run is paused",
    *("scraper", "run", "pages", "reason", "where"),
)
ROBOTS_IGNORED = LogEvent("robots.ignored", "warning", "robots.txt is not asked", "scraper", "reason")

SITEMAP_MISSING = LogEvent("sitemap.missing", "warning", "robots.txt names no sitemap", "scraper", "url")
SITEMAP_NESTED_TOO_DEEP = LogEvent(
    "sitemap.nested_too_deep",
    "warning",
    "sitemaps nested too deep are left out",
    *("scraper", "url", "left_out", "most"),
)
SITEMAP_LISTED_TOO_MANY = LogEvent(
    "sitemap.listed_too_many", "warning", "more sitemaps than are read of one index", "scraper", "url", "most"
)
SITEMAP_REFUSED_ENTRIES = LogEvent("sitemap.refused_entries", "debug", "entries refused", "count", "first", "reason")
SITEMAP_TRUNCATED = LogEvent(
    "sitemap.truncated",
    "warning",
    "sitemap with more entries than are taken of one file",
    *("scraper", "url", "taken"),
)
SITEMAP_BROKE = LogEvent(
    "sitemap.broke",
    "warning",
    "broken sitemap, read as far as possible",
    *("scraper", "url", "taken", "places", "first"),
)

EXIT_MISSING = LogEvent("exit.missing", "warning", "no exits for a route: its URLs wait", "scraper", "pool")
EXIT_FAILED = LogEvent("exit.failed", "warning", "an exit failed; its task goes by another", "exit", "reason")
EXIT_REFUSED = LogEvent("exit.refused", "warning", "an exit cannot be used", "exit", "reason")

TOR_STARTING = LogEvent("tor.starting", "info", "tor is starting", "progress", "doing")
TOR_DELAYED = LogEvent("tor.delayed", "warning", "tor is not ready yet", "progress", "doing")
TOR_READY = LogEvent("tor.ready", "info", "tor is ready", "exit")
TOR_DIED = LogEvent("tor.died", "warning", "tor has ended and is started again", "exit", "reason", "seconds")
TOR_RECOVERED = LogEvent("tor.recovered", "warning", "tor is back", "exit")
TOR_FAILED = LogEvent("tor.failed", "warning", "tor does not start", "exit", "reason", "seconds")
TOR_CHANGED_IDENTITY = LogEvent("tor.changed_identity", "info", "new identity", "exit", "lifts")
TOR_KEPT_IDENTITY = LogEvent("tor.kept_identity", "warning", "no new identity", "exit", "reason")

GATEWAY_FAILED = LogEvent("gateway.failed", "error", "a request could not be answered", "route")
BREAKER_OPENED = LogEvent("breaker.opened", "warning", "the store cannot be used; clients are told so", "reason")
BREAKER_CLOSED = LogEvent("breaker.closed", "warning", "the store can be used again")
SUBMISSION_UNSTORABLE = LogEvent(
    "submission.unstorable", "error", "the store does not hold a job; its client is told so", "job", "reason"
)
WEBHOOK_STALLED = LogEvent("webhook.stalled", "warning", "webhooks are not delivered at the moment", "reason")
WEBHOOK_REFUSED = LogEvent("webhook.refused", "warning", "a webhook cannot be delivered", "job", "reason")

EVENTS: Mapping[str, LogEvent] = {event: event for event in list(vars().values()) if isinstance(event, LogEvent)}
"""Every event by its name, in the order above."""


def with_sentence(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """For people (a processor of structlog): the sentence first, and the name where the logger's name would stand."""
    event = EVENTS.get(line["event"])
    if event is not None:
        line["event"], line["logger"] = event.sentence, str(event)
    return line


def without_traceback(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The line without the traceback of a user's handler (a processor of structlog). One of our own crashes stays."""
    line.pop("exception", None)
    return line
