"""Logs on stderr, as text for people or JSON for machines."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog

from shoal.cli.output.exit_codes import wants_tracebacks
from shoal.cli.output.tracebacks import with_traceback
from shoal.core.log_events import with_sentence, without_traceback

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

    from shoal.config.settings import Settings


class _Stderr(logging.Handler):
    """Writes to whatever stderr is at the moment, so that a live display can put lines above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
        except BrokenPipeError:
            return
        except Exception:  # noqa: BLE001 - a log line that cannot be written must not end the work
            self.handleError(record)


def _without_nothing(_logger: object, _method: str, event: EventDict) -> EventDict:
    """A line says what is known, and not what is not."""
    return {key: value for key, value in event.items() if value is not None}


def configure_logs(settings: Settings) -> None:
    """Send what Shoal and its libraries log to stderr, in one form, from the level of the settings on.

    Tracebacks of handlers are shown with `--debug`, and at the level `debug`; dead letters keep them in any case.
    No traceback shows variables, in whatever form and whoever logs it.
    """
    shared: list[Processor] = [
        _without_nothing,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        with_traceback,
    ]
    if not wants_tracebacks() and settings.log_level != "debug":
        shared.insert(0, without_traceback)
    renderers: list[Processor]
    if settings.log_format == "json":
        renderers = [structlog.processors.JSONRenderer()]
    else:
        console = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        renderers = [with_sentence, console]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = _Stderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
