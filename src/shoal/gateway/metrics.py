"""Figures for Prometheus. With several processes they share a folder, and any of them answers for all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from shoal.gateway.service import GatewayService

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """The figures of one process, and the page of all."""

    def __init__(self, service: GatewayService) -> None:
        self._service = service
        own = CollectorRegistry()
        self._requests = Counter(
            "shoal_gateway_requests", "Requests answered, by route and status.", ("route", "status"), registry=own
        )
        self._children: dict[tuple[str, int], Counter] = {}
        self._waiting = Gauge(
            "shoal_gateway_waiting_clients", "Clients that wait for news.", registry=own, multiprocess_mode="livesum"
        )
        self._page = own
        if SHARED_FOLDER in os.environ:
            self._page = CollectorRegistry()
            multiprocess.MultiProcessCollector(self._page)  # type: ignore[no-untyped-call]
        self._page.register(_Backlogs(service))

    def count(self, route: str, status: int) -> None:
        """One request was answered."""
        child = self._children.get((route, status))
        if child is None:
            child = self._children[route, status] = self._requests.labels(route, str(status))
        child.inc()
        self._waiting.set(self._service.polls.waiting)

    def page(self) -> bytes:
        """The figures as Prometheus reads them."""
        return generate_latest(self._page)


class _Backlogs:
    """What is the same whoever tells it: the store's own figures, as they were at the last look."""

    def __init__(self, service: GatewayService) -> None:
        self._service = service

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("shoal_store_up", "Whether the store can be reached.")
        up.add_metric((), float(self._service.breaker.trouble is None))
        yield up
        unfinished = GaugeMetricFamily("shoal_jobs_unfinished", "Jobs that have not ended.", labels=("queue",))
        ended = GaugeMetricFamily("shoal_jobs_ended_last_minute", "Jobs that ended lately.", labels=("queue",))
        for backlog in self._service.backlogs.values():
            unfinished.add_metric((backlog.queue,), backlog.unfinished)
            ended.add_metric((backlog.queue,), backlog.ended)
        yield unfinished
        yield ended
        workers = GaugeMetricFamily("shoal_workers", "Workers seen within the last minute.")
        workers.add_metric((), self._service.workers)
        yield workers
