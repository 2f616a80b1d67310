"""Whatever a client sends that the OpenAPI document allows, or does not: no 500, and every error is a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Err
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.gateway_process import Served, open_shop, served

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with open_shop() as shop, served(tmp_path_factory.mktemp("schema"), shop, max_wait="0.01") as running:
        yield running


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
def test_every_answer_is_as_described(gateway: Served, mode: GenerationMode) -> None:
    document = schemathesis.openapi.from_url(f"{gateway.url}/openapi.json")
    operations = [found.ok() for found in document.get_all_operations() if not isinstance(found, Err)]
    assert len(operations) > 10
    answered: Counter[int] = Counter()

    for operation in operations:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        )
        def check(case: Any) -> None:
            response = case.call(base_url=gateway.url, timeout=60)
            answered[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)
            if response.status_code >= 400:
                assert "application/problem+json" in response.headers["content-type"]
                assert response.json()["status"] == response.status_code

        try:
            check()
        except Unsatisfiable:
            continue  # nothing about it can be wrong
    print(mode.value, dict(answered))
    assert answered[202] if mode is GenerationMode.POSITIVE else answered[422]
