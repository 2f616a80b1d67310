"""Worker options, made from settings: whatever an operator sets reaches every worker."""

from __future__ import annotations

from dataclasses import fields

from shoal.config.settings import Settings
from shoal.runs.worker_options import worker_options
from shoal.work.options import IsolationOptions, WorkerOptions

SETTINGS = Settings.model_validate(
    {
        "user_agent": "Crawler/1",
        "contact": "me@example.org",
        "concurrency": 7,
        "audit": False,
        "cache_max_bytes": 10,
        "max_crawl_delay": "20s",
        "max_backoff": "2h",
        "max_block": "20s",
        "handler_timeout": "9s",
        "handler_memory": 10**8,
        "guard": {"allow_networks": ["10.0.0.0/8"], "isolate": False},
        "tor": {"path": "/opt/tor"},
        "exits": {"shops": {"ways": ["socks5://10.0.0.5:1080"]}},
    }
)


def test_all_that_is_set_reaches_the_worker() -> None:
    options = worker_options(SETTINGS, lanes=("bulk",), queues=("q",), batch=3, drain=True, revisit=False)
    assert (options.user_agent, options.concurrency) == ("Crawler/1 (+mailto:me@example.org)", 7)
    assert (options.audit, options.cache_max_bytes, options.max_crawl_delay) == (False, 10, 20_000)
    assert (options.max_backoff, options.max_block) == (7_200_000, 20.0)
    assert options.isolation == IsolationOptions(jobs=False, timeout=9.0, memory=10**8)
    assert (options.tor.path, sorted(options.exits)) == ("/opt/tor", ["10.0.0.5:1080", "direct", "tor"])
    assert options.guard.refuses_address("10.1.2.3") is None
    assert WorkerOptions("x").guard.refuses_address("10.1.2.3") is not None
    assert (options.lanes, options.queues, options.batch) == (("bulk",), ("q",), 3)
    assert (options.drain, options.revisit) == (True, False)


def test_no_option_is_forgotten() -> None:
    """Each field differs from its default; what settings do not know (`grace`, `timing`) is a worker's own."""
    made = worker_options(SETTINGS, lanes=("bulk",), queues=("q",), batch=3, drain=True, revisit=False)
    plain = WorkerOptions("x")
    same = {field.name for field in fields(WorkerOptions) if getattr(made, field.name) == getattr(plain, field.name)}
    assert same == {"grace", "timing"}
