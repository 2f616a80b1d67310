"""What no store can hold: it is not found, and where it is brought nevertheless, it is refused alone and in so many
words, the same whichever engine it is."""

from __future__ import annotations

import msgspec
import pytest

from shoal.core.outcome import Done
from shoal.core.task import Extra
from shoal.errors import UnknownRun, Unstorable
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.jobs import ANY, Admission, NewJob
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, page, settle

ODD = ("a\0b", "half \ud800 a character", "\udcff")
"""Names that nothing has: NUL, lone surrogates, what a shell makes of bytes that are no UTF-8."""

HALF = Extra(data={"half": "\ud800"})


@pytest.mark.asyncio
class RefusalContract:
    """Looking for what cannot be there finds nothing; bringing it is refused, and nothing of that call is kept."""

    async def test_an_odd_id_is_an_unknown_run(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        for odd in ODD:
            for verb in (scene.reader.run, scene.reader.items, scene.reader.dead, scene.frontier.cancel_run,
                         scene.frontier.pause_run, scene.frontier.resume_run, scene.frontier.seal_run,
                         scene.frontier.requeue_dead, scene.frontier.purge_dead):  # fmt: skip
                with pytest.raises(UnknownRun):
                    await verb(odd)
            with pytest.raises(UnknownRun):
                await scene.frontier.enqueue(odd, [page("a.example/")])

    async def test_an_odd_name_finds_nothing(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/")
        for odd in ODD:
            assert await scene.reader.site(odd) is None
            assert not await scene.reader.slots(odd)
            assert not await scene.reader.sites_of(odd)
            assert not (await scene.reader.notes(odd)).bodies
            assert not await scene.reader.whereabouts(
                "a.example", "https://a.example/", page("a.example/").key or b"", odd
            )
            assert not await scene.engine.cache.get([odd])
            assert not await scene.engine.exits.release_site(odd)
            assert not await scene.engine.jobs.statuses({odd: ANY})
            assert not await scene.engine.jobs.statuses({odd: 7})
            assert not await scene.engine.jobs.results([odd], 10, 10_000)
            assert not await scene.engine.jobs.listed(odd)
            assert not await scene.engine.registry.records(odd)
            assert not await scene.engine.registry.remove_record("key", odd)
            await scene.engine.jobs.clear_callbacks([odd])

    async def test_a_task_that_cannot_be_stored_is_refused_with_its_batch(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        with pytest.raises(Unstorable, match="does not hold such a value"):
            await scene.put("a.example/1", page("a.example/2", extra=HALF))
        assert (await scene.counters()).accepted == 0
        assert (await scene.put("a.example/1")).accepted == 1

    async def test_a_settlement_that_cannot_be_stored_is_refused_and_another_ends_the_lease(
        self, harness: Harness
    ) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put("a.example/1", "a.example/2")
        bad, good = await scene.claim(2)
        with pytest.raises(Unstorable):
            await scene.settle(settle(bad, Done(tasks=(page("a.example/3", extra=HALF),))), done(good, b'{"n":1}'))
        granted = await scene.settle(done(good, b'{"n":1}'), done(bad))
        assert not granted.late, "nothing of what was refused has happened"
        assert await scene.bodies() == [b'{"n":1}']
        await scene.check_books()

    async def test_a_job_that_cannot_be_stored_is_refused_and_the_next_is_not(self, harness: Harness) -> None:
        scene = Scene(harness)
        run = await scene.open_run("other")
        fine = NewJob(NewRun("job-1", run.scraper, run.policy, queue="jobs"), [page("a.example/")])
        odd = msgspec.structs.replace(
            fine,
            run=NewRun("job-2", run.scraper, run.policy, queue="jobs"),
            tasks=[page("a.example/", extra=HALF)],
        )
        with pytest.raises(Unstorable):
            await scene.engine.jobs.submit([fine, odd])
        assert not await scene.engine.jobs.statuses({"job-1": ANY, "job-2": ANY})
        (submitted,) = await scene.engine.jobs.submit([fine])
        assert submitted.admission is Admission.CREATED
