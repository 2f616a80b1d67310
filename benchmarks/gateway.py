"""The gateway: what a submission and a look cost beside the smallest one that does the job, and 25,000 users at once.

python benchmarks/gateway.py                                # Redis and PostgreSQL: about ten minutes
python benchmarks/gateway.py --quick                        # to see that it works
python benchmarks/gateway.py --engine redis --part users --users 25000
python benchmarks/gateway.py --save                         # the figures go to RESULTS.md
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

from parts.gateway.rates import measure_rates, rates_goals, rates_table
from parts.gateway.users import measure_users, users_goals, users_table
from parts.shared.private_servers import DURABILITY, POSTGRESQL, REDIS, PrivateServers
from parts.shared.report import BenchmarkError, facts, goals_table, machine, progress, save_section

if TYPE_CHECKING:
    from parts.gateway.rates import Rates
    from parts.gateway.users import Crowd

ENGINES = ("sqlite", POSTGRESQL, REDIS)
PARTS = ("rates", "users")


def main() -> int:
    """Measure what was asked for, and show it."""
    options = _options()
    engines = options.engine or [REDIS, POSTGRESQL]
    parts = options.part or list(PARTS)
    seconds, users, rounds = (2.0, 1000, 1) if options.quick else (options.seconds, options.users, 3)
    rates: list[Rates] = []
    crowds: list[Crowd] = []
    kinds = [kind for kind in (REDIS, POSTGRESQL) if kind in engines or (kind == REDIS and "rates" in parts)]
    try:
        with PrivateServers(kinds) as servers:
            for engine in engines:
                if "rates" in parts:
                    rates += measure_rates(servers, engine, seconds, rounds, options.connections)
                if "users" in parts:
                    with ExitStack() as stack:
                        crowds.append(measure_users(stack, servers, engine, users))
            setting = {**machine(), **{kind: f"{servers.version(kind)}, {DURABILITY[kind]}" for kind in kinds}}
    except BenchmarkError as error:
        progress(str(error))
        return 2
    goals = [*rates_goals(rates), *users_goals(crowds)]
    if options.json:
        found = {"rates": [asdict(each) for each in rates], "users": [asdict(each) for each in crowds]}
        print(json.dumps({**found, "goals": [goal.as_json() for goal in goals], "machine": setting}))
        return 0
    body = "\n\n".join(
        [
            "## Gateway",
            *([rates_table(rates)] if rates else []),
            *([users_table(crowds)] if crowds else []),
            goals_table(goals),
            facts(setting),
        ]
    )
    print(body)
    if options.save:
        save_section("gateway" if len(engines) > 1 else f"gateway {engines[0]}", body)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The gateway, beside its goals.")
    parser.add_argument(
        "--engine", choices=ENGINES, action="append", help="may be repeated; default: Redis, PostgreSQL"
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="may be repeated; default: all")
    parser.add_argument("--users", type=int, default=25_000, help="how many wait at once")
    parser.add_argument("--connections", type=int, default=256, help="of the load that measures rates")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measurement of a rate")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
