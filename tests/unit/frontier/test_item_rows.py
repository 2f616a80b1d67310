"""Items out of the batches that stores keep."""

from __future__ import annotations

from shoal.frontier.shared.item_rows import item_page, items_by_job

BATCHES = [(1, "a", None, b'[{"n":1},{"n":2}]'), (2, "b", "g", b'[{"n":3}]'), (5, "c", None, b'[{"n":4}]')]


def test_a_page_ends_with_the_batch_that_fills_it() -> None:
    page = item_page(BATCHES, 3)
    assert [(item.url, bytes(item.body)) for item in page.items] == [
        ("a", b'{"n":1}'),
        ("a", b'{"n":2}'),
        ("b", b'{"n":3}'),
    ]
    assert page.cursor == 2


def test_the_last_page_leads_behind_its_last_batch_and_an_empty_one_nowhere() -> None:
    assert item_page(BATCHES, 100).cursor == 5
    assert item_page([], 100).cursor is None


def test_a_job_has_at_most_so_many_items_and_may_have_none() -> None:
    rows = [("j", "a", None, b"[{},{}]"), ("j", "b", "g", b"[{},{}]"), ("empty", None, None, None)]
    found = items_by_job(rows, 3)
    assert [item.url for item in found["j"]] == ["a", "a", "b"]
    assert found["empty"] == []
