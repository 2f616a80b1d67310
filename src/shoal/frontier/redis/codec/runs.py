"""New runs as the scripts read them."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.redis.codec.encoding import opaque


def run_question(run: NewRun) -> dict[str, Any]:
    """A new run, with the rules that the scripts need apart from the policy that they only keep."""
    policy = run.policy
    rules = {
        "delay": policy.delay,
        "site_delay": policy.site_delay,
        "concurrency": policy.concurrency,
        "hard_timeout": policy.hard_timeout,
        "lease": policy.lease,
        "limit_exits": policy.limit_exits,
        "limit_window": policy.limit_window,
        "crashes": policy.crashes,
        "results_ttl": policy.results_ttl,
        "pool": policy.pool,
        "queue": run.queue or run.run_id,
        "scraper": run.scraper,
        "lanes": {lane: (False if own.ttl is None else own.ttl, own.auto_ack) for lane, own in policy.lanes.items()},
    }
    return {
        "run_id": run.run_id,
        "scraper": run.scraper,
        "mode": run.mode,
        "policy": opaque(msgspec.json.encode(policy)),
        "rules": rules,
        "input": None if run.input is None else opaque(run.input),
    }
