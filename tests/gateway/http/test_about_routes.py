"""What a gateway says of itself: scrapers, OpenAPI, health, metrics."""

from __future__ import annotations

import re

from support.gateway_process import CART, Served
from support.waiting import wait_until


class TestAbout:
    def test_scrapers_are_listed_with_their_inputs(self, idle: Served) -> None:
        found = {each["name"]: each for each in idle.ask("/scrapers").body}
        assert found["cart"]["path"] == "/cart"
        assert set(found["cart"]["input"]["properties"]) == {"items", "zipcode"}
        assert (found["plain"]["path"], found["plain"]["input"]) == (None, None)
        assert found["jobs"]["path"] is None, "the name is taken"

    def test_openapi_has_the_inputs(self, idle: Served) -> None:
        document = idle.ask("/openapi.json").body
        body = document["paths"]["/cart"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body == {"$ref": "#/components/schemas/Cart"}
        assert "application/problem+json" in document["paths"]["/cart"]["post"]["responses"]["422"]["content"]

    def test_health_names_each_part(self, gateway: Served, idle: Served) -> None:
        gateway.finished(gateway.submit("/cart", CART))
        wait_until(lambda: gateway.ask("/health").body["status"] == "ok", "the worker has been seen")
        assert gateway.ask("/health").body["parts"]["workers"]["seen"] == 1
        assert idle.ask("/health").body["status"] == "no workers"
        assert idle.ask("/health/live").status == 204

    def test_metrics(self, idle: Served) -> None:
        idle.submit("/cart", CART)
        page = idle.ask("/metrics").raw.decode()
        assert re.search(r'shoal_gateway_requests_total\{route="/cart",status="202"\} [1-9]', page)
        assert "shoal_store_up 1.0" in page
        idle.ask("/cart", b"{")
        assert 'route="/cart",status="400"' in idle.ask("/metrics").raw.decode(), "also what was refused"

    def test_cors(self, idle: Served) -> None:
        asked = {"Origin": "https://shop.example", "Access_Control_Request_Method": "POST"}
        allowed = idle.ask("/cart", method="OPTIONS", **asked)
        assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
        answer = idle.ask("/cart", CART, Origin="https://shop.example")
        assert "Location" in answer.headers["access-control-expose-headers"]
        refused = idle.ask("/cart", method="OPTIONS", **{**asked, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in refused.headers
