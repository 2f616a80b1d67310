"""Webhooks: how a message to a client is signed, and how whoever receives it makes sure where it comes from.

The form is that of Standard Webhooks, so that its libraries for other languages can verify ours:

    webhook-id: cart-6f…              the same at every attempt, so that a repeated delivery is noticed
    webhook-timestamp: 1763280000     when this attempt was made, in seconds since 1970
    webhook-signature: v1,BASE64      HMAC-SHA256 of `ID.TIMESTAMP.BODY`, by the secret of the API key

The secret follows from the API key, so that nobody has to hand it out: HMAC-SHA256 of `webhook`, by the key itself. It
does not follow from what a gateway stores of the key in clear.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.core.clock import SystemClock
from shoal.core.duration import Duration, seconds_from
from shoal.errors import BadWebhook, UsageError

DELIVERIES = "webhooks"
"""What deliveries are called wherever tasks have a scraper, a lane, a queue or a pool of exits: they have their own."""

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with
TOLERANCE = 300.0
SHORTEST_KEY = 16
"""Bytes: fewer could be guessed."""

LONGEST_FIELD = 4096
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def webhook_secret(api_key: str) -> str:
    """The secret that messages about the jobs of an API key are signed with, such as `whsec_3q2+…`.

    It proves where a message comes from, and allows nothing else: give this to the program that receives webhooks, and
    keep the key itself from it.
    """
    return SECRET_PREFIX + b64encode(hmac.digest(_not_empty(api_key).encode(), b"webhook", "sha256")).decode()


def signed(secret: str, delivery_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt to deliver this body."""
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{_signature(_key_of(secret), delivery_id, str(timestamp), body)}",
    }


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, tolerance: Duration = TOLERANCE, now: float | None = None
) -> dict[str, Any]:
    """What a webhook says, if it comes from the gateway: `{"type": "job.complete", "timestamp": …, "data": {…}}`.

    `secret`: of the API key (`webhook_secret`), or the key itself. `headers`, `body`: of the request, as they came.
    `tolerance`: how far its time may be off (a Duration); an older one may be a recording. `now`: None = by the clock.
    Raises BadWebhook if it is not what it should be, however odd it is; UsageError if the secret is none.
    A message may come more than once: `data.job_id` tells.
    """
    known = _key_of(_not_empty(secret))
    allowed = _allowed(tolerance)
    delivery_id, timestamp, signatures = (
        _field(headers, f"webhook-{name}") for name in ("id", "timestamp", "signature")
    )
    if _TIMESTAMP.fullmatch(timestamp) is None:
        raise BadWebhook("The header webhook-timestamp is no time: this is no webhook of a gateway.")
    expected = f"v1,{_signature(known, delivery_id, timestamp, body)}".encode()
    if not any(hmac.compare_digest(each.encode(), expected) for each in signatures.split()):
        raise BadWebhook("The signature is not that of this message: it is not from the gateway, or was changed.")
    moment = SystemClock().now() / 1000 if now is None else now
    if abs(moment - int(timestamp)) > allowed:
        raise BadWebhook(f"The message is of {timestamp}, more than {allowed:g} seconds from now.")
    try:
        document: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadWebhook("The message is signed, and yet no JSON object: this is no webhook of a gateway.") from None
    return document


def _not_empty(secret: object) -> str:
    """A secret that is none would let anybody sign: most often it is a variable of the environment that is not set."""
    if isinstance(secret, str) and secret.strip():
        return secret
    raise UsageError(
        "The webhook secret is empty. Give that of your API key, which `shoal keys create` shows, or the key itself."
    )


def _key_of(secret: str) -> bytes:
    """What messages are signed with, from a webhook secret or from an API key."""
    text = secret if secret.startswith(SECRET_PREFIX) else webhook_secret(secret)
    try:
        key = b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (NotBase64, ValueError):
        key = b""
    if len(key) < SHORTEST_KEY:
        raise UsageError("A webhook secret is `whsec_` and base64, as `shoal keys create` shows it.")
    return key


def _allowed(tolerance: Duration) -> float:
    try:
        return seconds_from(tolerance)
    except ValueError as error:
        raise UsageError(f"tolerance={tolerance!r} cannot be used: it must be {error}.") from None


def _field(headers: Mapping[str, str], name: str) -> str:
    """The one value of a header, however its name is spelled. Raises BadWebhook for none, two, or one that is odd."""
    found = [value for each, value in headers.items() if isinstance(each, str) and each.lower() == name]
    if not found:
        raise BadWebhook(f"The header {name} is missing: this is no webhook of a gateway.")
    (value, *more) = found
    if more or not isinstance(value, str) or not value.isascii() or len(value) > LONGEST_FIELD:
        raise BadWebhook(f"The header {name} is not one plain text: this is no webhook of a gateway.")
    return value


def _signature(key: bytes, delivery_id: str, timestamp: str, body: bytes) -> str:
    return b64encode(hmac.digest(key, f"{delivery_id}.{timestamp}.".encode() + bytes(body), "sha256")).decode()
