"""The results of a job as clients see them."""

from __future__ import annotations

import msgspec

from shoal.frontier.contract.reader import Item
from shoal.gateway.http.job_documents import grouped


class TestDocuments:
    def test_every_group_is_there_in_the_order_asked_for(self) -> None:
        items = [Item("u", group, msgspec.Raw(b"{}")) for group in ("eggs", None, "new", "eggs")]
        assert {group: len(found) for group, found in dict(grouped(("milk", "eggs"), items)).items()} == {  # type: ignore[arg-type]
            "milk": 0,
            "eggs": 2,
            "": 1,
            "new": 1,
        }
        assert list(grouped(("milk", "eggs"), items)) == ["milk", "eggs", "", "new"]

    def test_without_groups_it_is_a_list(self) -> None:
        assert grouped((), [Item("u", None, msgspec.Raw(b"{}"))]) == [msgspec.Raw(b"{}")]
        assert grouped((), []) == []
