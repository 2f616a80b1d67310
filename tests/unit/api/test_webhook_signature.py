"""Webhooks are signed by a published standard."""

from __future__ import annotations

import contextlib
import hmac
import json
from base64 import b64decode
from hashlib import sha256

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

    @pytest.mark.parametrize("secret", ["", " ", "\n", None, "whsec_", "whsec_AAAA", "whsec_é"])
    def test_a_secret_that_is_none_is_a_mistake_of_the_receiver(self, secret: str) -> None:
        """Else anybody could sign: a variable that is not set is the empty text."""
        with pytest.raises(UsageError, match="webhook secret") as told:
            verify_webhook(secret, self.headers(), b"{}", now=self.NOW)
        assert not isinstance(told.value, BadWebhook)

    ODD = st.one_of(
        st.text(),
        st.text(st.characters()),  # lone surrogates among them
        st.binary(),
        st.none(),
        st.integers(),
        st.lists(st.text(), max_size=2),
        st.integers(-(10**40), 10**40).map(str),
        st.sampled_from(["٣", "1e9", "nan", "1_700_000_000", "v1," * 5000, "é", "\0"]),
    )
    FIELDS = st.sampled_from(
        ["webhook-id", "webhook-timestamp", "webhook-signature", "Webhook-ID", "WEBHOOK-Signature"]
    )

    @given(st.dictionaries(st.one_of(FIELDS, st.text(), st.binary()), ODD, max_size=5), st.binary(max_size=20))
    def test_odd_headers_are_a_bad_webhook_and_nothing_else(self, odd: dict[str, str], body: bytes) -> None:
        for headers in (odd, {**self.headers(body), **odd}):
            with contextlib.suppress(BadWebhook):
                verify_webhook(self.SECRET, headers, body, now=self.NOW)

    @given(st.binary(max_size=30))
    def test_a_signed_body_that_is_no_document(self, body: bytes) -> None:
        for said in (body, b"[" * 5000 + b"]" * 5000, b'{"a":' * 5000, b"[]", b"\xff"):
            with contextlib.suppress(BadWebhook):
                assert isinstance(verify_webhook(self.SECRET, self.headers(said), said, now=self.NOW), dict)

    def test_a_header_that_came_twice(self) -> None:
        twice = {**self.headers(), "Webhook-Id": "cart-2"}
        with pytest.raises(BadWebhook, match="webhook-id is not one"):
            verify_webhook(self.SECRET, twice, b"{}", now=self.NOW)

    def test_what_a_gateway_stores_of_a_key_does_not_sign(self) -> None:
        """Whoever reads the store has the key's hash, and must not be able to speak for the gateway."""
        stored = sha256(b"shoal_key").digest()
        signing = b64decode(self.SECRET.removeprefix("whsec_"))
        assert signing not in (stored, hmac.digest(stored, b"webhook", "sha256"))
