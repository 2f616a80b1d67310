"""Secrets on their way into a store, and from one store to another."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.core.outcome import Done, Settlement
from shoal.core.secret_box import SecretBox, is_sealed
from shoal.core.task import NO_EXTRA, Extra, NewTask
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.contract.mover import Cargo, PackedLetter, PackedTask
from shoal.frontier.sealing import SealedExits, resealed_cargo, sealed_tasks
from support.working import opened

OLD, NEW = SecretBox(lambda: ("o" * 32,)), SecretBox(lambda: ("n" * 32,))
LOGIN = {"Authorization": "Bearer x", "Accept": "y"}


def task(extra: Extra = NO_EXTRA) -> NewTask:
    return NewTask("https://a.example/", "a.example", None, extra=extra)


def test_tasks_without_secrets_are_left_as_they_are() -> None:
    plain = (task(), task(Extra(group="milk")), task(Extra(headers={"Accept": "y"})))
    assert sealed_tasks(plain, OLD) is plain
    sealed = sealed_tasks((*plain, task(Extra(headers=LOGIN))), OLD)
    assert sealed[:3] == plain
    headers = sealed[3].extra.headers or {}
    assert (is_sealed(headers["Authorization"]), headers["Accept"]) == (True, "y")
    assert sealed_tasks(sealed, OLD) is sealed


def test_a_move_seals_with_the_key_of_the_new_store() -> None:
    extra = msgspec.json.encode(Extra(headers=OLD.seal_headers(LOGIN), data={"n": 1})).decode()
    waiting = PackedTask(1, "u", "s", "bulk", None, 0, 0, 0, 0, extra, None, None)
    letter = PackedLetter(2, "u", "s", "bulk", None, 0, 0, 1, 0, extra, "{}", 5)
    plain = PackedTask(3, "u", "s", "bulk", None, 0, 0, 0, 0, None, None, None)
    moved = resealed_cargo(Cargo(tasks=[waiting, plain], letters=[letter], keys=[b"k"]), OLD, NEW)
    for packed in (moved.tasks[0], moved.letters[0]):
        there = msgspec.json.decode(packed.extra or "", type=Extra)
        assert NEW.open_headers(there.headers or {}) == LOGIN
        assert there.data == {"n": 1}
    assert (moved.tasks[1], moved.keys) == (plain, [b"k"])
    same = Cargo(tasks=[waiting], letters=[])
    assert resealed_cargo(same, OLD, OLD) == same


async def test_links_are_sealed_in_the_settlement(tmp_path: Path) -> None:
    """Also where whoever brings them has not."""
    from shoal.frontier.sealing import _settled  # noqa: PLC0415 - the part that is cheap to look at

    links = (task(), task(Extra(headers=LOGIN)))
    plain = [Settlement("run", 1, 1, Done(tasks=links[:1]))]
    assert _settled(plain, OLD) is plain
    (settled,) = _settled([Settlement("run", 1, 1, Done(tasks=links))], OLD)
    assert isinstance(settled.outcome, Done)
    assert is_sealed((settled.outcome.tasks[1].extra.headers or {})["Authorization"])

    async with opened(tmp_path) as engine:
        exits = SealedExits(engine.exits, OLD)
        await exits.put([NewExit("p", "http://u:pw@h:1", ("default",)), NewExit("q", "http://h:2", ("default",))])
        assert [each.address for each in await exits.all()] == ["http://u:pw@h:1", "http://h:2"]
        stored = [each.address for each in await engine.exits.all()]
        assert (is_sealed(stored[0]), stored[1]) == (True, "http://h:2")
        assert [each.address for each in await SealedExits(engine.exits, NEW).all()] == ["", "http://h:2"]
