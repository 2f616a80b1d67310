"""Fuzzers over the whole gateway: routes one after the other as the OpenAPI document has them, and bytes below HTTP.

No answer is a 500, nothing hangs, and the gateway is there afterwards. `make proof` does so for minutes on each engine.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance

from proof.strangers.broken_requests import BrokenRequest
from proof.strangers.gate import Gate, attacked
from support.engine_urls import ENGINES

SHORT_STORIES = 4
"""In `make test`, of up to twelve requests each; and so many broken requests:"""
SHORT_REQUESTS = 250
MINUTES = float(os.environ.get("SHOAL_PROOF_MINUTES", "3"))
"""How long each fuzzer goes on in `make proof`, on each engine."""


@pytest.fixture(scope="module")
def gate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with attacked(tmp_path_factory.mktemp(f"fuzzed-{request.param}"), request.param, 1) as (opened, _key):
        yield opened


@pytest.mark.parametrize("gate", ENGINES, indirect=True)
def test_no_story_of_requests_is_answered_with_a_failure(gate: Gate) -> None:
    print(dict(_stories(gate, SHORT_STORIES, seed=1)))


@pytest.mark.parametrize("gate", ["sqlite"], indirect=True)
def test_no_bytes_stop_the_gateway(gate: Gate) -> None:
    """They come no further than the HTTP of the gateway, so that one engine is enough here."""
    print(dict(_broken_requests(gate, range(SHORT_REQUESTS))))


@pytest.mark.proof
@pytest.mark.parametrize("engine", ENGINES)
def test_fuzzers_for_minutes(tmp_path: Path, engine: str) -> None:
    told, sent = Counter[int](), Counter[str]()
    with attacked(tmp_path, engine, 1) as (gate, _key):
        end = time.monotonic() + MINUTES * 60
        while time.monotonic() < end:
            told += _stories(gate, 50, seed=told.total())
        end = time.monotonic() + MINUTES * 60
        while time.monotonic() < end:
            done = sent.total()
            sent += _broken_requests(gate, range(SHORT_REQUESTS + done, SHORT_REQUESTS + done + 2_000))
    print(f"{engine}: {told.total()} requests of stories {dict(told)}, {sent.total()} broken ones {dict(sent)}")


def _stories(gate: Gate, count: int, seed: int) -> Counter[int]:
    """Requests that follow from each other: submit, look, page on, cancel. Answers how often each status was given."""
    answered: Counter[int] = Counter()
    document = schemathesis.openapi.from_url(
        f"{gate.served.url}/openapi.json", headers={"Authorization": f"Bearer {gate.key}"}
    )

    class Story(document.as_state_machine()):  # type: ignore[misc]  # the class is made from the document
        def get_call_kwargs(self, _case: Any) -> dict[str, Any]:
            return {
                "base_url": gate.served.url,
                "headers": {"Authorization": f"Bearer {gate.key}"},
                "timeout": 60,
                "stream": False,
            }

        def validate_response(self, response: Any, case: Any, **_options: Any) -> None:
            answered[response.status_code] += 1
            case.validate_response(response, checks=[not_a_server_error, content_type_conformance])

    Story.run(
        settings=settings(
            max_examples=count,
            stateful_step_count=12,
            deadline=None,
            database=None,
            derandomize=not seed,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
    )
    _is_well(gate)
    return answered


def _broken_requests(gate: Gate, numbers: range) -> Counter[str]:
    body = b'{"words": ["milk"]}'
    right = (
        gate.head("POST /searches HTTP/1.1", f"Content-Length: {len(body)}", "Content-Type: application/json") + body,
        gate.head("POST /searches HTTP/1.1", "Transfer-Encoding: chunked")
        + b"13\r\n"
        + body
        + b"\r\n0\r\nA: b\r\n\r\n",
        gate.head("GET /jobs?limit=2 HTTP/1.1"),
        gate.head("GET /results/searches-0123456789abcdef0123456789abcdef?wait=0 HTTP/1.1"),
        gate.head("DELETE /jobs/searches-0123456789abcdef0123456789abcdef HTTP/1.1"),
        gate.head("GET /openapi.json HTTP/1.1"),
        gate.head("OPTIONS /searches HTTP/1.1", "Origin: http://x", "Access-Control-Request-Method: POST"),
    )
    seen: Counter[str] = Counter()
    for number in numbers:
        raw = bytes(BrokenRequest(number, right))
        said = gate.first_word(raw, timeout=0.2)
        status = said[9:12].decode("latin-1") if said.startswith(b"HTTP/1.") else "nothing"
        seen[status] += 1
        assert status not in ("500", "501", "502"), (number, raw[:400], said[:400])
    _is_well(gate)
    return seen


def _is_well(gate: Gate) -> None:
    assert gate.served.process.poll() is None, (gate.served.folder / "serve.log").read_text()[-4000:]
    assert gate.ask("/health/live").status == 204
    assert gate.ask("/searches", {"words": ["milk"]}).status == 202
