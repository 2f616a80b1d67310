"""Writes docs/reference/log-events.md from the vocabulary of the log; `make docs` calls it."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from shoal.core.log_events import EVENTS, LogEvent

NOTE = "<!-- Made by `make docs` from `shoal.core.log_events`. Change the code, not this page. -->"

INTRODUCTION = """\
Shoal logs to standard error: events with names that stay, and keys with values. `log_format = "json"` gives one object
a line, with the name as `event`; search and alert by that. As text the same line has the sentence first:

```
{"event": "store.recovered", "after": "1.2 s", "attempts": 3, "level": "warning", "logger": "shoal", "timestamp": "…"}
2026-11-18T10:15:49Z [warning  ] the store answers again        [store.recovered] after='1.2 s' attempts=3
```

A key whose value is not known is left out. A line from a crash of our own has the traceback beside (`exception`). What
libraries log (aiohttp, uvicorn, …) comes in the same form, with a text of theirs as the event. `log_level` says from
which level on."""


def log_page() -> str:
    """The whole page."""
    parts = [NOTE, "# Log events", INTRODUCTION]
    for component, events in groupby(sorted(EVENTS.values()), lambda event: event.partition(".")[0]):
        rows = ["| event | level | what it says | keys |", "| --- | --- | --- | --- |", *map(_row, events)]
        parts += [f"## {component}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _row(event: LogEvent) -> str:
    keys = ", ".join(f"`{key}`" for key in event.keys)
    return f"| `{event}` | {event.level} | {event.sentence} | {keys} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(log_page(), encoding="utf-8")
