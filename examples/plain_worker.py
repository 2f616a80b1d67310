"""Works on a run with nothing but a lease client: no scraper, no worker of Shoal; here with urllib, in threads.

shoal run examples/books.py --mode distributed --run-id tonight
python examples/plain_worker.py sqlite:///shoal.db books tonight
"""

import asyncio
import json
import re
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

from shoal import LeaseClient, open_leases
from shoal.core.outcome import Blame, Dead, Done, Reason, Retried, Snoozed
from shoal.delivery.held_lease import HeldLease
from shoal.errors import StartRefused


async def main(engine: str, scraper: str, run: str) -> None:
    """Eight requests at once, each at its moment, until nothing is left."""
    leasing = open_leases(engine, [scraper], queues=[run], concurrency=8, drain=True)
    async with leasing as leases, asyncio.TaskGroup() as group:
        async for lease in leases:
            group.create_task(work(leases, lease))


async def work(leases: LeaseClient, lease: HeldLease) -> None:
    """One lease from its request to its outcome."""
    try:
        async with lease.request():
            html = await asyncio.to_thread(fetch, lease.task.url)
    except StartRefused:
        leases.give_back(lease)
    except OSError as error:  # also an HTTPError
        leases.settle(lease, failure(lease, error))
    else:
        title = re.search(r"<title>(.*?)</title>", html)
        item = {"url": lease.task.url, "title": title and title[1]}
        links = [lease.link(href) for href in re.findall(r'<a href="(/[^"#]*)"', html)]
        leases.settle(lease, Done((json.dumps(item).encode(),), tuple(links), lease.task.url))


def fetch(url: str) -> str:
    """What is there, as text."""
    with urlopen(url, timeout=30) as answer:  # noqa: S310 - URLs of tasks are http or https
        return str(answer.read().decode("utf-8", "replace"))


def failure(lease: HeldLease, error: OSError) -> Snoozed | Retried | Dead:
    """A rate limit waits on the site and costs nothing; else the task is tried three times."""
    reason = Reason(Blame.HOST, str(error))
    if isinstance(error, HTTPError) and error.code == 429:
        seconds = int(error.headers.get("Retry-After") or 60)
        return Snoozed(seconds * 1000, lease.lease.penalty + 1, reason)
    return Dead(reason) if lease.task.attempts >= 2 else Retried(2000, reason)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
