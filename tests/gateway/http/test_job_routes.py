"""Jobs over HTTP, from submission to results, on a real gateway with real workers."""

from __future__ import annotations

import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from servers.proxy import running_proxy
from shoal.gateway.http.models import JobDocument
from support.gateway_process import CART, Served, problem


class TestTheCart:
    def test_from_submission_to_results(self, gateway: Served) -> None:
        accepted = gateway.ask("/cart", CART)
        assert accepted.status == 202
        job_id = accepted.body["job_id"]
        assert accepted.body["status"] == "queued"
        assert accepted.body["position"] >= 1
        assert accepted.body["estimated_time"] >= 1
        assert accepted.headers["location"] == f"/results/{job_id}"
        assert int(accepted.headers["retry-after"]) >= 1
        assert gateway.ask(f"/results/{job_id}").status == 200, "readable at once"
        done = gateway.finished(job_id)
        assert (done["status"], done["progress"]) == ("complete", "3/3 items completed")
        assert list(done["results"]) == CART["items"]
        assert all(6 <= len(products) <= 20 for products in done["results"].values())
        assert all("milk" in product["title"] for product in done["results"]["milk"])
        assert done["items"] == sum(map(len, done["results"].values()))
        assert gateway.ask(f"/jobs/{job_id}").body == done
        assert set(done) <= set(JobDocument.model_fields)
        JobDocument.model_validate(done)

    def test_zip_codes_are_told_apart(self, gateway: Served) -> None:
        carts = [{"items": ["milk"], "zipcode": str(number)} for number in range(5)]
        job_ids = [gateway.submit("/cart", cart) for cart in carts]
        results = [json.dumps(gateway.finished(job_id)["results"]) for job_id in job_ids]
        assert len(set(results)) == 5

    def test_nothing_has_changed(self, gateway: Served) -> None:
        job_id = gateway.submit("/cart", CART)
        gateway.finished(job_id)
        first = gateway.ask(f"/results/{job_id}")
        again = gateway.ask(f"/results/{job_id}", If_None_Match=first.headers["etag"])
        assert (again.status, again.raw) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert gateway.ask(f"/results/{job_id}", If_None_Match='W/"999999"').status == 200

    def test_items_page_by_page_and_line_by_line(self, gateway: Served) -> None:
        job_id = gateway.submit("/cart", CART)
        number = gateway.finished(job_id)["items"]
        found, following = [], 0
        while following is not None:
            page = gateway.ask(f"/jobs/{job_id}/items?limit=2&cursor={following}").body
            found += page["items"]
            following = page["next"]
        assert len(found) == number
        lines = gateway.ask(f"/jobs/{job_id}/items", Accept="application/x-ndjson")
        assert lines.headers["content-type"] == "application/x-ndjson"
        assert [json.loads(line) for line in lines.raw.splitlines()] == found
        assert {record["group"] for record in found} == set(CART["items"])

    def test_events_end_with_the_job(self, gateway: Served) -> None:
        job_id = gateway.submit("/cart", CART)
        answer = gateway.ask(f"/jobs/{job_id}/events")
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = re.findall(r"event: (\w+)\nid: (\d+)\ndata: (.*)\n\n", answer.raw.decode())
        assert [kind for kind, _, _ in events[:-1]] == ["status"] * (len(events) - 1)
        kind, _, data = events[-1]
        assert (kind, json.loads(data)["status"]) == ("end", "complete")
        assert len({version for _, version, _ in events}) == len(events)
        last = gateway.ask(f"/jobs/{job_id}/events", Last_Event_ID="0")
        assert last.raw.count(b"event: ") == 1

    def test_urls_for_any_scraper(self, gateway: Served, shop: str) -> None:
        job_id = gateway.submit("/jobs", {"scraper": "plain", "urls": [f"{shop}page/1", f"{shop}page/2", "ftp://x/"]})
        done = gateway.finished(job_id)
        assert (done["status"], done["progress"]) == ("complete", "2/2 pages completed")
        assert [set(item) for item in done["results"]] == [{"title"}, {"title"}]

    def test_pages_that_cannot_be_read_are_named(self, gateway: Served, shop: str) -> None:
        some = gateway.finished(
            gateway.submit("/jobs", {"scraper": "plain", "urls": [f"{shop}page/1", f"{shop}books/x"]})
        )
        assert some["status"] == "complete"
        assert [(each["url"], "404" in each["reason"]) for each in some["errors"]] == [(f"{shop}books/x", True)]
        none = gateway.finished(gateway.submit("/jobs", {"scraper": "plain", "urls": [f"{shop}books/x"]}))
        assert (none["status"], "404" in none["error"], none["results"]) == ("failed", True, [])

    def test_many_at_once_get_their_own_results(self, gateway: Served) -> None:
        def one(number: int) -> None:
            cart = {"items": [f"thing{number}"], "zipcode": "1"}
            results = gateway.finished(gateway.submit("/cart", cart))["results"]
            assert list(results) == [f"thing{number}"]
            assert all(f"thing{number}," in product["title"] for product in results[f"thing{number}"])

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(one, range(60)))


class TestStartsThatFail:
    def test_a_start_that_raises_fails_the_job(self, gateway: Served) -> None:
        done = gateway.finished(gateway.submit("/sick", {"word": "milk"}))
        assert (done["status"], done["results"]) == ("failed", [])
        assert done["error"] == "The start of 'sick' failed with ValueError: no milk today."

    def test_a_start_that_takes_too_long_fails_the_job_and_holds_up_nobody(self, gateway: Served) -> None:
        with ThreadPoolExecutor(6) as pool:
            slow = [pool.submit(gateway.submit, "/slow", {"word": "x"}) for _ in range(3)]
            quick = gateway.finished(gateway.submit("/cart", CART))
            assert quick["status"] == "complete"
            errors = {gateway.finished(job.result())["error"] for job in slow}
        assert errors == {"The start of 'slow' took more than 1 seconds."}


class TestSubmittingTwice:
    def test_the_same_key_is_the_same_job(self, idle: Served) -> None:
        key = str(uuid.uuid4())
        first = idle.ask("/cart", CART, Idempotency_Key=key)
        again = idle.ask("/cart", CART, Idempotency_Key=key)
        assert (again.status, again.body["job_id"]) == (202, first.body["job_id"])
        assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
        other = idle.ask("/cart", {**CART, "zipcode": "2"}, Idempotency_Key=key)
        problem(other, 422, "idempotency-key-reused")

    def test_many_at_once_with_the_same_key_are_one_job(self, idle: Served) -> None:
        key = str(uuid.uuid4())
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: idle.submit("/cart", CART, Idempotency_Key=key), range(20)))
        assert len(set(answers)) == 1

    def test_an_answer_that_was_lost_on_the_way(self, idle: Served) -> None:
        key = str(uuid.uuid4())
        with running_proxy(int(idle.url.rsplit(":", 1)[1])) as proxy:
            through = Served(f"http://127.0.0.1:{proxy.port}", idle.process, idle.folder)
            proxy.lose_answer(to=key.encode())
            with pytest.raises(OSError, match=r"reset|closed|Remote"):
                through.ask("/cart", CART, Idempotency_Key=key)
            answer = through.ask("/cart", CART, Idempotency_Key=key)
        assert answer.headers["idempotency-replayed"] == "true"

    @pytest.mark.parametrize("key", ["", "short", "x" * 256, "with\ttab and more than enough"])
    def test_a_key_that_cannot_be_told_apart_is_refused(self, idle: Served, key: str) -> None:
        problem(idle.ask("/cart", CART, Idempotency_Key=key), 400, "bad-idempotency-key")
