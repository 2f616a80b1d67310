"""A frontier that is too simple to be wrong: lists, and a loop over all of them for every question.

It does not choose what to hand out. An engine does, and the model says whether it was allowed to (I2-I6), whether it
should have handed out more, and what must be counted afterwards. `shoal.testing.model.machine` drives both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from shoal.core.clock import Moment
from shoal.core.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.core.task import DEFAULT_POOL, Lease, NewTask, RunState, State
from shoal.frontier.contract.frontier import Ask, Granted
from shoal.testing.model.parts import ModelLease, ModelRun, ModelSite, ModelSlot, ModelTask

NEVER: Moment = 1 << 60


class FrontierModel:
    """What an engine must agree with. All verbs take the moment at which they happen."""

    def __init__(self, exits: Sequence[str]) -> None:
        self.exits = tuple(exits)
        self.runs: dict[str, ModelRun] = {}
        self.tasks: list[ModelTask] = []
        self.leases: list[ModelLease] = []
        self.sites: dict[str, ModelSite] = {}

    # -- what waits -------------------------------------------------------------------------------------------------

    def enqueue(self, run: ModelRun, tasks: Iterable[NewTask], now: Moment, loads: Counter[str] | None = None) -> int:
        """Accept tasks. `loads`: what the sites had to bear when this began, if not what they bear now."""
        loads = self.loads() if loads is None else loads
        accepted = []
        for task in tasks:
            if task.key is not None and task.key in run.seen:
                run.counts["duplicates"] += 1
                continue
            if task.key is not None:
                run.seen.add(task.key)
            accepted.append(task)
        for task in accepted:
            site = self.sites.setdefault(task.site, ModelSite())
            site.take_rules(run.policy, anew=not loads[task.site])
            loads[task.site] += 1
            ttls = [ttl for ttl in (task.ttl, run.lane(task.lane).ttl) if ttl is not None]
            ends = now + task.wait + min(ttls) if ttls else NEVER
            place = (len(self.tasks), run, task.site, task.lane, task.priority, task.url)
            self.tasks.append(ModelTask(*place, now + task.wait, ends, key=task.key))
            run.counts["waiting"] += 1
        if accepted and run.state is RunState.FINISHED:
            run.state = RunState.RUNNING
        return len(accepted)

    def loads(self) -> Counter[str]:
        """How many tasks each site has to bear: not ended, or still in somebody's hands."""
        loads: Counter[str] = Counter()
        for task in self.tasks:
            loads[task.site] += task.state in (State.WAITING, State.LEASED)
        for held in self.leases:
            loads[held.task.site] += held.auto_ack
        return loads

    def move(self, task: ModelTask, to: State) -> None:
        task.run.counts[task.state.value] -= 1
        task.run.counts[to.value] += 1
        task.state = to

    def expire(self, now: Moment) -> int:
        over = [task for task in self.tasks if task.state is State.WAITING and task.expires_at <= now]
        for task in over:
            self.move(task, State.EXPIRED)
        return len(over)

    def finish(self) -> None:
        for run in self.runs.values():
            if run.sealed and run.state is RunState.RUNNING and not run.counts["waiting"] + run.counts["leased"]:
                run.state = RunState.FINISHED

    # -- settling ---------------------------------------------------------------------------------------------------

    def settle(self, settlements: Sequence[Settlement], now: Moment) -> list[int]:
        """Answers the tokens that must be refused (I2)."""
        loads = self.loads()
        late: list[int] = []
        links: dict[str, list[NewTask]] = {}
        for settlement in settlements:
            held = self.find(settlement)
            if held is None:
                late.append(settlement.token)
                if settlement.run_id in self.runs:
                    self.runs[settlement.run_id].counts["late"] += 1
                continue
            self.leases.remove(held)
            self._move_clocks(held, settlement, now)
            run = held.task.run
            for name in ("requests", "received", "refused", "duplicates"):
                run.counts[name] += getattr(settlement, name)
            if held.auto_ack:
                outcome = settlement.outcome
                if run.state is not RunState.CANCELLED and isinstance(outcome, Done):
                    run.counts["items"] += len(outcome.items)
                    links.setdefault(run.run_id, []).extend(outcome.tasks)
            elif run.state is RunState.CANCELLED:
                self.move(held.task, State.CANCELLED)
            else:
                links.setdefault(run.run_id, []).extend(self._apply(held.task, settlement, now))
        for run_id, tasks in links.items():
            self.enqueue(self.runs[run_id], tasks, now, loads)
        return late

    def lost_grants(self, ask: Ask) -> list[Settlement]:
        """What the worker holds and does not know of goes back, as by a settlement that made no request."""
        known = {*(ask.held or ()), *(settlement.token for settlement in ask.settlements)}
        return [
            Settlement(held.task.run.run_id, held.lease.task.id, held.lease.token, Snoozed())
            for held in self.leases
            if ask.held is not None and held.worker == ask.worker.worker_id and held.lease.token not in known
        ]

    def find(self, settlement: Settlement) -> ModelLease | None:
        for held in self.leases:
            lease = held.lease
            named = (lease.task.run_id, lease.task.id, lease.token)
            if named == (settlement.run_id, settlement.task, settlement.token):
                return held
        return None

    def _apply(self, task: ModelTask, settlement: Settlement, now: Moment) -> Sequence[NewTask]:
        counts = task.run.counts
        match settlement.outcome:
            case Done(items=items, tasks=tasks):
                self.move(task, State.DONE)
                counts["items"] += len(items)
                return tasks
            case Retried(wait=wait):
                self.move(task, State.WAITING)
                task.attempts += 1
                task.not_before = now + wait
                counts["retries"] += 1
            case Snoozed(wait=wait, extra=extra, aside=aside):
                self.move(task, State.WAITING)
                task.extra = extra or task.extra
                if aside:
                    task.not_before = now + aside
                counts["snoozes"] += bool(wait)
            case Dead(extra=extra, attempts=attempts):
                task.attempts += attempts
                task.extra = extra or task.extra
                self.move(task, State.DEAD)
            case Dropped():
                self.move(task, State.DROPPED)
        return ()

    def _move_clocks(self, held: ModelLease, settlement: Settlement, now: Moment) -> None:
        site = self.sites[held.task.site]
        slot = site.slots[held.lease.exit]
        outcome = settlement.outcome
        slot.end(settlement.token, settlement.started_at)
        slot.used_at = now
        if site.site_delay:
            site.end(settlement.token, settlement.started_at)
        if settlement.crawl_delay is not None:
            site.crawl_delay = settlement.crawl_delay
        if settlement.pace is not None:
            site.slowed = settlement.pace
        if isinstance(outcome, Snoozed) and outcome.wait:
            site.limit_slot(slot, outcome.wait, outcome.penalty, now)
        else:
            for limited in (slot, site):
                limited.end_probe(settlement.token, went_well=settlement.started_at is not None)

    # -- claiming ---------------------------------------------------------------------------------------------------

    def asked_for(self, ask: Ask) -> Iterator[ModelTask]:
        """Tasks that wait in the lanes and queues of an ask, whether or not their time has come."""
        for task in self.tasks:
            asked = task.lane in ask.lanes and (ask.queues is None or task.run.queue in ask.queues)
            if asked and task.state is State.WAITING:
                yield task

    def ready(self, ask: Ask, now: Moment) -> list[ModelTask]:
        return [task for task in self.asked_for(ask) if task.run.goes_on and task.not_before <= now < task.expires_at]

    def live(self, site: str, way_out: str) -> int:
        return sum(held.task.site == site and held.lease.exit == way_out for held in self.leases)

    def slot(self, site: str, way_out: str) -> ModelSlot:
        return self.sites[site].slots.setdefault(way_out, ModelSlot())

    def allowed_at(self, name: str, way_out: str) -> Moment:
        """I4: before this moment, no request of the slot may start."""
        site, slot = self.sites[name], self.slot(name, way_out)
        of_site = site.begun() + site.site_delay if site.site_delay else 0
        return max(slot.begun() + site.pace, slot.blocked_until, site.blocked_until, of_site)

    def promised_at(self, name: str, way_out: str) -> Moment:
        """From this moment on, an engine has no reason to keep the slot back."""
        site, slot = self.sites[name], self.slot(name, way_out)
        of_site = site.held() + site.site_delay if site.site_delay else 0
        return max(slot.held() + site.pace, slot.blocked_until, site.blocked_until, of_site)

    def grant(self, ask: Ask, lease: Lease, now: Moment) -> None:
        """An engine has handed this out: was it allowed to?"""
        [task] = [task for task in self.tasks if task.url == lease.task.url]
        assert task in self.ready(ask, now), f"{task} was not to be had"
        assert task.id in (0, lease.task.id), "a task keeps its number"
        task.id = lease.task.id
        told = (lease.task.attempts, lease.task.crashes, lease.task.extra)
        assert told == (task.attempts, task.crashes, task.extra)
        line = (task.run.queue, task.lane, task.site)
        before = [o for o in self.ready(ask, now) if (o.run.queue, o.lane, o.site) == line and o.place < task.place]
        assert not before, f"I6: {before[0]} stood before {task}"
        site = self.sites[task.site]
        slot = self.slot(task.site, lease.exit)
        live = self.live(task.site, lease.exit)
        assert live < site.concurrency, f"I3: {live} leases live already"
        assert not slot.probe, "one request goes first after a rate limit of the slot"
        assert not site.probe, "one request goes first after a rate limit of the site"
        assert now <= lease.start_at <= now + ask.ahead
        allowed = self.allowed_at(task.site, lease.exit)
        assert lease.start_at >= allowed, f"I4: may start {allowed - lease.start_at} ms too early"
        assert lease.start_at <= max(now, self.promised_at(task.site, lease.exit)), "may start later than need be"
        assert lease.start_at <= lease.start_by <= lease.expires_at == now + task.run.policy.lease
        assert (lease.exclusive, lease.delay, lease.penalty) == (site.exclusive, site.pace, slot.penalty_at(now))
        free = [name for name in self.exits if self._open(task.site, name, now + ask.ahead)]
        assert slot.used_at == min(self.slot(task.site, name).used_at for name in free), "least recently used first"
        self._take(task, lease, ask.worker.worker_id, now)

    def _take(self, task: ModelTask, lease: Lease, worker: str, now: Moment) -> None:
        site, slot = self.sites[task.site], self.slot(task.site, lease.exit)
        paced = site.pace or site.site_delay
        latest = lease.start_by if paced else lease.start_at
        slot.used_at = now
        slot.take(lease.token)
        site.take(lease.token)
        if site.exclusive:
            slot.latest = lease.token
        else:
            slot.grant(lease.token, latest)
            if site.site_delay:
                site.grant(lease.token, latest)
        auto_ack = task.run.lane(task.lane).auto_ack
        self.leases.append(ModelLease(lease, worker, task, lease.expires_at, auto_ack))
        self.move(task, State.DONE if auto_ack else State.LEASED)

    def _open(self, site: str, way_out: str, horizon: Moment) -> bool:
        return self._room(site, way_out) > 0 and self.promised_at(site, way_out) <= horizon

    def _room(self, site: str, way_out: str) -> int:
        room = self.sites[site].concurrency - self.live(site, way_out)
        return min(room, self.sites[site].room(), self.slot(site, way_out).room())

    def check_answer(self, ask: Ask, granted: Granted, now: Moment, *, lazy: bool) -> None:
        """Was anything kept back, and is the worker woken up in time? `lazy`: the claim may have met lazy tasks."""
        waiting = list(self.asked_for(ask))
        cut_short = granted.wake_at is not None and granted.wake_at <= now
        due = [task for task in self.ready(ask, now) if self._any_open(task, now + ask.ahead)]
        if due and len(granted.leases) < ask.want:
            assert lazy, f"I9: {due[0]} was due and was not handed out"
            assert cut_short, f"{due[0]} is due, and nobody is told"
        if not waiting and not lazy:
            assert granted.wake_at is None, "nothing waits"
        for task in waiting:
            if not task.run.goes_on or task.expires_at <= now:
                continue
            moments = [
                self.promised_at(task.site, way_out) - ask.ahead
                for way_out in self.exits
                if self._room(task.site, way_out) > 0
            ]
            if moments:
                assert granted.wake_at is not None, f"{task} waits, and nobody is told until when"
                assert granted.wake_at <= max(now, task.not_before, min(moments)), f"{task} is due before `wake_at`"
        assert DEFAULT_POOL in ask.exits

    def _any_open(self, task: ModelTask, horizon: Moment) -> bool:
        return any(self._open(task.site, way_out, horizon) for way_out in self.exits)

    # -- what time and operators do -----------------------------------------------------------------------------------

    def renew(self, tokens: Sequence[tuple[int, int]], now: Moment) -> list[int]:
        """Answers the tokens that no longer live."""
        alive: set[int] = set()
        for held in self.leases:
            named = (held.lease.task.id, held.lease.token)
            if named in tokens and held.task.run.state is not RunState.CANCELLED:
                held.expires_at = now + held.task.run.policy.lease
                alive.add(held.lease.token)
        return [token for _, token in tokens if token not in alive]

    def sweep(self, now: Moment) -> tuple[int, int]:
        """Bring back what was lost (I5). Answers how many tasks wait again, and how many became dead letters."""
        returned = buried = 0
        for held in [held for held in self.leases if held.expires_at <= now]:
            self.leases.remove(held)
            task, site = held.task, self.sites[held.task.site]
            slot = site.slots[held.lease.exit]
            slot.blocked_until = max(slot.blocked_until, held.expires_at + site.hard_timeout + site.pace)
            for limited in (slot, site):
                limited.end_probe(held.lease.token, went_well=False)
            if held.auto_ack:
                continue
            task.crashes += 1
            task.run.counts["crashes"] += 1
            if task.run.state is RunState.CANCELLED:
                self.move(task, State.CANCELLED)
            elif task.crashes >= task.run.policy.crashes:
                self.move(task, State.DEAD)
                buried += 1
            else:
                self.move(task, State.WAITING)
                returned += 1
        self.expire(now)
        self._relax(now)
        return returned, buried

    def _relax(self, now: Moment) -> None:
        """Each site keeps the strictest rules of the runs that have work there, or a request under way."""
        for name, site in self.sites.items():
            waiting = [task for task in self.tasks if task.site == name and task.state is State.WAITING]
            under_way = [held for held in self.leases if held.task.site == name]
            holders = [task.run.policy for task in waiting if self.is_wanted(task)]
            was_exclusive = site.exclusive
            for number, policy in enumerate([*holders, *(held.task.run.policy for held in under_way)]):
                site.take_rules(policy, anew=not number)
            for held in under_way:
                slot, life = site.slots[held.lease.exit], held.task.run.policy.lease
                is_opened = was_exclusive and not site.exclusive
                if slot.latest == held.lease.token and (is_opened or slot.held() > now + life // 2):
                    slot.reserve(held.lease.token, now + life)

    def requeue(self, run: ModelRun) -> int:
        letters = [task for task in self.tasks if task.run is run and task.state is State.DEAD]
        loads = self.loads()
        for task in letters:
            self.sites[task.site].take_rules(run.policy, anew=not loads[task.site])
            loads[task.site] += 1
            self.move(task, State.WAITING)
            task.attempts = task.crashes = 0
            task.not_before, task.expires_at = 0, NEVER
        if letters and run.state is RunState.FINISHED:
            run.state = RunState.RUNNING
        return len(letters)

    def end_doomed(self, borne: dict[str, int]) -> None:
        """Waiting tasks of cancelled runs end whenever an engine meets them. `borne`: what its sites still bear."""
        loads = self.loads()
        for name, load in loads.items():
            doomed = [t for t in self.tasks if t.site == name and t.state is State.WAITING and not self.is_wanted(t)]
            gone = load - borne.get(name, 0)
            assert 0 <= gone <= len(doomed), f"{name} should bear {load} tasks, and bears {borne.get(name, 0)}"
            for task in doomed[:gone]:
                self.move(task, State.CANCELLED)

    def states(self, task: ModelTask, now: Moment) -> set[State]:
        """What may be said of where a task is. How far the end of a cancelled run has come, is not known here."""
        if task.run.state is RunState.CANCELLED and task.state in (State.WAITING, State.EXPIRED, State.CANCELLED):
            return {State.WAITING, State.EXPIRED, State.CANCELLED}
        return {State.EXPIRED if task.state is State.WAITING and task.expires_at <= now else task.state}

    def is_wanted(self, task: ModelTask) -> bool:
        return task.run.state is not RunState.CANCELLED

    def has_lazy_tasks(self) -> bool:
        """Whether tasks of paused or cancelled runs wait: an engine may set them aside only when it meets them."""
        return any(task.state is State.WAITING and not task.run.goes_on for task in self.tasks)
