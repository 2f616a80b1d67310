"""Webhooks: how a message to a client is signed, and how whoever receives it makes sure where it comes from.

The form is that of Standard Webhooks, so that its libraries for other languages can verify ours:

    webhook-id: cart-6f…              the same at every attempt, so that a repeated delivery is noticed
    webhook-timestamp: 1763280000     when this attempt was made, in seconds since 1970
    webhook-signature: v1,BASE64      HMAC-SHA256 of `ID.TIMESTAMP.BODY`, by the secret of the API key

The secret follows from the API key, so that nobody has to hand it out: HMAC-SHA256 of `webhook`, by the key's SHA-256.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from shoal.core.clock import SystemClock
from shoal.core.duration import Duration, seconds_from
from shoal.errors import BadWebhook, UsageError

DELIVERIES = "webhooks"
"""What deliveries are called wherever tasks have a scraper, a lane, a queue or a pool of exits: they have their own."""

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with
TOLERANCE = 300.0


def webhook_secret(api_key: str) -> str:
    """The secret that messages about the jobs of an API key are signed with, such as `whsec_3q2+…`.

    It proves where a message comes from, and allows nothing else: give this to the program that receives webhooks, and
    keep the key itself from it.
    """
    return secret_of_hash(sha256(api_key.encode()).hexdigest())


def secret_of_hash(key_hash: str) -> str:
    """The same from the hash of the key, which is all that a gateway has of it."""
    return SECRET_PREFIX + b64encode(hmac.digest(bytes.fromhex(key_hash), b"webhook", "sha256")).decode()


def signed(secret: str, delivery_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt to deliver this body."""
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{_signature(secret, delivery_id, str(timestamp), body)}",
    }


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, tolerance: Duration = TOLERANCE, now: float | None = None
) -> dict[str, Any]:
    """What a webhook says, if it comes from the gateway: `{"type": "job.complete", "timestamp": …, "data": {…}}`.

    `secret`: of the API key (`webhook_secret`), or the key itself. `headers`, `body`: of the request, as they came.
    `tolerance`: how far its time may be off (a Duration); an older one may be a recording. `now`: None = by the clock.
    Raises BadWebhook if it is not what it should be. A message may come more than once: `data.job_id` tells.
    """
    known = secret if secret.startswith(SECRET_PREFIX) else webhook_secret(secret)
    fields = {name.lower(): value for name, value in headers.items()}
    try:
        delivery_id, timestamp, signatures = (fields[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as error:
        raise BadWebhook(f"The header {error.args[0]} is missing: this is no webhook of a gateway.") from None
    expected = f"v1,{_signature(known, delivery_id, timestamp, body)}".encode()
    if not any(hmac.compare_digest(each.encode(), expected) for each in signatures.split()):
        raise BadWebhook("The signature is not that of this message: it is not from the gateway, or was changed.")
    try:
        allowed = seconds_from(tolerance)
    except ValueError as error:
        raise UsageError(f"tolerance={tolerance!r} cannot be used: it must be {error}.") from None
    moment = SystemClock().now() / 1000 if now is None else now
    if abs(moment - int(timestamp)) > allowed:
        raise BadWebhook(f"The message is of {timestamp}, more than {allowed:g} seconds from now.")
    document: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    return document


def _signature(secret: str, delivery_id: str, timestamp: str, body: bytes) -> str:
    try:
        key = b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except NotBase64:
        raise UsageError("A webhook secret is `whsec_` and base64, as `shoal keys create` shows it.") from None
    return b64encode(hmac.digest(key, f"{delivery_id}.{timestamp}.".encode() + body, "sha256")).decode()
