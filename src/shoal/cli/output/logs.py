"""Logs on stderr or in a file, as text for people or JSON for machines."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog

from shoal.cli.output.exit_codes import wants_tracebacks
from shoal.cli.output.tracebacks import with_traceback
from shoal.core.log_events import with_sentence, without_traceback
from shoal.errors import BadSettings

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


def _log_file(name: str) -> logging.Handler:
    try:
        return logging.FileHandler(name, encoding="utf-8")
    except OSError as error:
        raise BadSettings(f"The log file {name!r} cannot be written: {error.strerror}.") from None


def _without_nothing(_logger: object, _method: str, event: EventDict) -> EventDict:
    """A line says what is known, and not what is not."""
    return {key: value for key, value in event.items() if value is not None}


def configure_logs(settings: Settings) -> None:
    """Send what Shoal and its libraries log to stderr or to a file, in one form, from the level of the settings on.

    Several processes may add to one file: each line is written at once. Raises BadSettings if it cannot be written.
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
            colors=settings.log_file is None and sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,
        )
        renderers = [with_sentence, console]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = _Stderr() if settings.log_file is None else _log_file(settings.log_file)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
