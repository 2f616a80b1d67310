"""Webhooks are signed by a published standard."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import verify_webhook, webhook_secret
from shoal.api.webhook_signature import signed
from shoal.errors import BadWebhook, UsageError


class TestVerifying:
    SECRET = webhook_secret("shoal_key")
    NOW = 1_700_000_000

    def headers(self, body: bytes = b"{}") -> dict[str, str]:
        return signed(self.SECRET, "cart-1", self.NOW, body)

    def test_an_example_of_the_standard(self) -> None:
        """From the specification of Standard Webhooks: others compute the same."""
        secret = "whsec_plJ3nmyCDGBKInavdOK15jsl"  # noqa: S105 - as published
        body = b'{"event_type":"ping","data":{"success":true}}'
        made = signed(secret, "msg_loFOjxBNrRLzqYUf", 1731705121, body)
        assert made["webhook-signature"] == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="

    @given(st.binary(max_size=50), st.integers(0, 2**33))
    def test_what_was_signed_is_verified(self, noise: bytes, moment: int) -> None:
        body = json.dumps({"noise": noise.hex()}).encode()
        headers = signed(self.SECRET, "cart-1", moment, body)
        shouted = {name.upper(): value for name, value in headers.items()}
        assert verify_webhook(self.SECRET, shouted, body, now=moment + 299) == {"noise": noise.hex()}

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"webhook-id": "cart-2"}, "signature"),
            ({"webhook-timestamp": "1700000001"}, "signature"),
            ({"webhook-signature": ""}, "signature"),
            ({"webhook-signature": "v1,AAAA v1a,x é"}, "signature"),
        ],
    )
    def test_any_change_is_noticed(self, change: dict[str, str], why: str) -> None:
        with pytest.raises(BadWebhook, match=why):
            verify_webhook(self.SECRET, {**self.headers(), **change}, b"{}", now=self.NOW)

    def test_other_bodies_secrets_and_times(self) -> None:
        good = self.headers()
        assert verify_webhook("shoal_key", good, b"{}", now=self.NOW) == {}
        rotated = {**good, "webhook-signature": f"v1,AAAA {good['webhook-signature']}"}
        assert verify_webhook(self.SECRET, rotated, b"{}", now=self.NOW) == {}
        for secret, body, now in (
            (self.SECRET, b"{} ", self.NOW),
            (webhook_secret("other"), b"{}", self.NOW),
            (self.SECRET, b"{}", self.NOW + 301),
            (self.SECRET, b"{}", self.NOW - 301),
        ):
            with pytest.raises(BadWebhook):
                verify_webhook(secret, good, body, now=now)
        with pytest.raises(BadWebhook, match="webhook-id is missing"):
            verify_webhook(self.SECRET, {}, b"{}")
        with pytest.raises(UsageError, match="base64"):
            verify_webhook("whsec_?", good, b"{}")
