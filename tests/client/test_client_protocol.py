"""What clients say to a gateway: how often they ask, for how long they try, and what they make of the answers."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from shoal.client.address import address_of
from shoal.client.protocol import GatewayRequest, NoAnswer, Pause, Reply, Talk, Talker
from shoal.errors import GatewayUnavailable, JobFailed, JobUnfinished, RequestRefused, UnknownJob, UsageError
from shoal.testing.jump_clock import JumpClock

JOB = "cart-0123456789abcdef0123456789abcdef"
Answer = Reply | NoAnswer


class Sent(NamedTuple):
    """What was asked, and when."""

    at: float
    ask: GatewayRequest


class Talked:
    """Leads talks, on a clock that only they move. `answers` come in order, each after so many seconds."""

    def __init__(self, *answers: tuple[float, Answer], **options: Any) -> None:
        self.clock = JumpClock()
        self.talker = Talker(self.clock, **options)
        self.answers = list(answers)
        self.sent: list[Sent] = []

    def lead(self, talk: Talk[Any]) -> Any:
        try:
            step = next(talk)
            while True:
                if isinstance(step, Pause):
                    assert step.seconds > 0
                    self.clock.advance(round(step.seconds * 1000) + 1)
                    step = talk.send(None)
                else:
                    self.sent.append(Sent(self.clock.elapsed() / 1000, step))
                    seconds, answer = self.answers.pop(0) if self.answers else (0.01, NoAnswer("nobody"))
                    self.clock.advance(round(min(seconds, step.timeout) * 1000))
                    step = talk.send(answer)
        except StopIteration as end:
            return end.value

    @property
    def times(self) -> list[float]:
        return [sent.at for sent in self.sent]


def job(status: str, poll_after: float | None = None, version: int = 1, **more: Any) -> Reply:
    document = {"job_id": JOB, "status": status, "poll_after": poll_after, **more}
    return Reply(200, {"etag": f'W/"{version}"'}, json.dumps(document).encode())


def unchanged(again: int) -> Reply:
    return Reply(304, {"retry-after": str(again)}, b"")


def problem(status: int, kind: str = "some-kind", **headers: str) -> Reply:
    document = {"type": f"tag:shoal,2026:{kind}", "title": "Title", "status": status, "detail": "This is why."}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"content-type": "application/problem+json", **names}, json.dumps(document).encode())


DONE = job("complete", results={"milk": [{"price": 1}]})


class TestWaiting:
    def test_who_wants_no_news_is_told_of_the_end_only(self) -> None:
        talked = Talked((25.0, job("queued", 1.0)), (25.0, job("processing", 1.0)), (3.0, DONE))
        assert talked.lead(talked.talker.wait(JOB, None, None)).results == {"milk": [{"price": 1}]}
        assert [sent.ask.path for sent in talked.sent] == [f"/results/{JOB}?wait=25.000"] * 3
        assert talked.times == [0, 25, 50]
        assert all("if-none-match" not in sent.ask.headers for sent in talked.sent)

    def test_in_the_queue_each_hint_is_followed_by_the_next_question(self) -> None:
        hints = [2.0, 5.0, 9.0]
        answers = [(0.0, job("queued", 2.0)), (2.0, job("queued", 5.0)), (5.0, job("queued", 9.0)), (1.0, DONE)]
        talked = Talked(*answers)
        heard: list[str] = []
        talked.lead(talked.talker.wait(JOB, None, lambda news: heard.append(news.status)))
        assert [sent.ask.held for sent in talked.sent] == [0, *hints]
        assert talked.times == [0, 0, 2, 7]
        assert heard == ["queued", "queued", "queued", "complete"]

    def test_progress_is_asked_for_once_per_hint_and_the_end_at_any_time(self) -> None:
        talked = Talked(
            (0.0, job("processing", 4.0, 1)),
            (4.0, job("processing", 4.0, 1)),
            (1.0, job("processing", 4.0, 2)),  # news, early
            (4.0, job("processing", 4.0, 2)),  # a hint later
            (25.0, unchanged(7)),
            (0.5, DONE),
        )
        heard: list[str] = []
        talked.lead(talked.talker.wait(JOB, None, lambda news: heard.append(news.status)))
        asked = [(sent.ask.held, sent.ask.headers.get("if-none-match")) for sent in talked.sent]
        assert asked == [(0, None), (4, None), (25, 'W/"1"'), (4, None), (25, 'W/"2"'), (25, 'W/"2"')]
        assert heard == ["processing"] * 4 + ["complete"]

    def test_a_gateway_that_does_not_let_us_wait_is_left_alone_for_the_hint(self) -> None:
        talked = Talked(*[(0.0, job("processing", 3.0))] * 4, (0.0, DONE))
        talked.lead(talked.talker.wait(JOB, None, None))
        assert [round(at) for at in talked.times] == [0, 3, 6, 9, 12]

    def test_one_that_says_at_once_that_nothing_changed_is_left_alone_too(self) -> None:
        answers = [(0.0, job("processing", 1.0)), (1.0, job("processing", 1.0)), (0.0, unchanged(5))]
        talked = Talked(*answers, (0.0, DONE))
        talked.lead(talked.talker.wait(JOB, None, lambda news: None))
        assert talked.times[-1] - talked.times[-2] >= 5

    def test_time_may_be_over(self) -> None:
        talked = Talked((0.0, job("queued", 1.0)), *[(1.0, job("queued", 1.0, progress="0/3 items completed"))] * 9)
        with pytest.raises(JobUnfinished, match=r"has not ended in time \(0/3 items completed\)") as caught:
            talked.lead(talked.talker.wait(JOB, 3.5, lambda news: None))
        assert caught.value.job is not None
        assert talked.clock.elapsed() / 1000 <= 5
        assert talked.sent[-1].ask.held == pytest.approx(0.5)

    @pytest.mark.parametrize(
        ("end", "sentence"),
        [
            (job("failed", error="none of its pages came in time"), "has failed: none of its pages came in time"),
            (job("cancelled"), "has been cancelled."),
        ],
    )
    def test_an_end_without_results_is_an_error(self, end: Reply, sentence: str) -> None:
        talked = Talked((0.0, end))
        with pytest.raises(JobFailed, match=sentence) as caught:
            talked.lead(talked.talker.wait(JOB, None, None))
        assert caught.value.job.job_id == JOB


class TestTrying:
    def test_a_submission_is_the_same_one_each_time(self) -> None:
        accepted = Reply(202, {}, json.dumps({"job_id": JOB, "status": "queued", "position": 3}).encode())
        talked = Talked(
            (0.1, NoAnswer("reset")), (0.1, problem(503)), (0.1, Reply(502, {}, b"<html>")), (0.1, accepted)
        )
        assert talked.lead(talked.talker.submit("cart", {"items": ["milk"]}, None, "key-1")).position == 3
        assert len(talked.sent) == 4
        assert len({(sent.ask.body, sent.ask.headers["idempotency-key"]) for sent in talked.sent}) == 1
        assert json.loads(talked.sent[0].ask.body or b"") == {"scraper": "cart", "input": {"items": ["milk"]}}

    def test_pauses_grow_and_patience_ends(self) -> None:
        talked = Talked(patience=30)
        with pytest.raises(GatewayUnavailable, match=r"does not answer \(nobody\)"):
            talked.lead(talked.talker.result(JOB))
        apart = [later - earlier for earlier, later in zip(talked.times, talked.times[1:], strict=False)]
        assert apart[0] < 0.3
        assert 3.7 < max(apart) < 6.4
        assert 20 < talked.times[-1] <= 30

    def test_what_the_gateway_asks_for_is_heeded(self) -> None:
        talked = Talked((0.0, problem(503, retry_after="9")), (0.0, problem(429, retry_after="12")), (0.0, DONE))
        talked.lead(talked.talker.result(JOB))
        assert talked.times[1] >= 9
        assert talked.times[2] >= 21

    def test_an_answer_that_was_awaited_for_long_was_no_trouble_until_it_was_lost(self) -> None:
        talked = Talked((25.0, NoAnswer("reset")), (0.0, DONE), patience=10)
        assert talked.lead(talked.talker.wait(JOB, None, None)).status == "complete"

    def test_trouble_that_was_overcome_is_forgotten(self) -> None:
        trouble: list[tuple[float, Answer]] = [
            (10.0, NoAnswer("reset")),
            (10.0, NoAnswer("reset")),
            (25.0, job("processing", 1.0)),
        ]
        talked = Talked(*trouble * 4, (0.0, DONE), patience=30)
        assert talked.lead(talked.talker.wait(JOB, None, None)).status == "complete"

    def test_a_limit_that_outlasts_patience_is_told_as_what_it_is(self) -> None:
        talked = Talked((0.0, problem(429, "too-many-jobs", retry_after="50")), patience=10)
        with pytest.raises(RequestRefused, match=r"This is why\.") as caught:
            talked.lead(talked.talker.submit("cart", {}, None, "k"))
        assert (caught.value.status, caught.value.kind) == (429, "too-many-jobs")
        assert len(talked.sent) == 1

    def test_what_is_wrong_is_not_tried_again(self) -> None:
        talked = Talked((0.0, problem(422, "bad-input")))
        with pytest.raises(RequestRefused) as caught:
            talked.lead(talked.talker.submit("cart", {}, None, "k"))
        refused = caught.value
        assert (refused.status, refused.kind, refused.title, refused.detail) == (
            422,
            "bad-input",
            "Title",
            "This is why.",
        )
        assert refused.problem["status"] == 422

    @pytest.mark.parametrize(("status", "kind"), [(404, "unknown-job"), (410, "expired-job")])
    def test_jobs_that_are_not_there(self, status: int, kind: str) -> None:
        talked = Talked((0.0, problem(status, kind)))
        with pytest.raises(UnknownJob):
            talked.lead(talked.talker.wait(JOB, None, None))

    @pytest.mark.parametrize(
        "reply",
        [
            Reply(200, {"content-type": "text/html"}, b"<html>Welcome"),
            Reply(200, {}, b"[]"),
            Reply(200, {}, b"\xff\xfe"),
            Reply(301, {"location": "https://elsewhere/"}, b""),
            Reply(500, {"content-type": "application/json"}, b"{broken"),
            Reply(799, {}, b""),
            Reply(404, {"content-type": "application/json"}, b"[1]"),
        ],
    )
    def test_what_is_no_gateway_is_said_so_in_a_sentence(self, reply: Reply) -> None:
        talked = Talked((0.0, reply))
        with pytest.raises(RequestRefused, match=r"\w+ \w+.*\.$"):
            talked.lead(talked.talker.result(JOB))


class TestAsking:
    def test_an_id_is_never_more_than_one_step_of_the_path(self) -> None:
        talked = Talked((0.0, DONE))
        talked.lead(talked.talker.result("../jobs?x=1"))
        assert talked.sent[0].ask.path == "/results/..%2Fjobs%3Fx%3D1"

    def test_the_key_goes_with_every_request(self) -> None:
        talked = Talked((0.0, DONE), api_key="shoal_secret")
        talked.lead(talked.talker.result(JOB))
        assert talked.sent[0].ask.headers["authorization"] == "Bearer shoal_secret"

    @pytest.mark.parametrize("api_key", ["a\r\nHost: x", "schlüssel"])
    def test_a_key_that_cannot_be_one(self, api_key: str) -> None:
        with pytest.raises(UsageError, match="An API key is one line"):
            Talked(api_key=api_key)

    def test_an_input_that_cannot_be_json(self) -> None:
        talked = Talked()
        with pytest.raises(UsageError, match="it holds something of type object"):
            talked.lead(talked.talker.submit("cart", {"items": object()}, None, "k"))

    @pytest.mark.parametrize(
        ("url", "origin", "path"),
        [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000", ""),
            ("https://api.example/shop/", "https://api.example:443", "/shop"),
            ("http://[::1]:81/", "http://[::1]:81", ""),
        ],
    )
    def test_addresses(self, url: str, origin: str, path: str) -> None:
        address = address_of(url)
        assert (address.origin, address.path) == (origin, path)

    @pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x/", "http://", "http://x:99999", "http://x/?a=1"])
    def test_what_is_no_address(self, url: str) -> None:
        with pytest.raises(UsageError, match="is not the URL of a gateway"):
            address_of(url)
