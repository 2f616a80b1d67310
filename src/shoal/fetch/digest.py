"""HTTP Digest authentication (RFC 7616): a challenge, read from a 401, and the answer to it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import md5, sha256
from typing import NamedTuple

_PARAMETER = re.compile(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCHEME = re.compile(r"(?:^|,)\s*(Digest)\s+", re.IGNORECASE)
_NEXT_SCHEME = re.compile(r",\s*[\w-]+\s+[\w-]+\s*=")
LONGEST = 4000
"""Characters of a challenge that are looked at."""


class Challenge(NamedTuple):
    """What a site wants to have answered. `is_stale`: the last answer was right, and only too old."""

    realm: str
    nonce: str
    opaque: str | None
    algorithm: str | None
    qop: bool
    is_stale: bool

    def answer(self, user: str, password: str, method: str, target: str, *, count: int, own_nonce: str) -> str:
        """The value of `Authorization` for one request. `target`: path and query. `count`: how often the nonce was
        used, this time included. `own_nonce`: chosen by us, at random."""
        digest = _sha256 if (self.algorithm or "").upper().startswith("SHA-256") else _md5
        secret = digest(f"{user}:{self.realm}:{password}")
        if (self.algorithm or "").upper().endswith("-SESS"):
            secret = digest(f"{secret}:{self.nonce}:{own_nonce}")
        asked = digest(f"{method}:{target}")
        used = f"{count:08x}"
        middle = f"{self.nonce}:{used}:{own_nonce}:auth" if self.qop else self.nonce
        said = {"username": user, "realm": self.realm, "nonce": self.nonce, "uri": target}
        said["response"] = digest(f"{secret}:{middle}:{asked}")
        if self.opaque is not None:
            said["opaque"] = self.opaque
        parts = [f'{name}="{_quoted(value)}"' for name, value in said.items()]
        if self.algorithm is not None:
            parts.append(f"algorithm={self.algorithm}")
        if self.qop or (self.algorithm or "").upper().endswith("-SESS"):
            parts.append(f'cnonce="{own_nonce}"')
        if self.qop:
            parts += ["qop=auth", f"nc={used}"]
        return "Digest " + ", ".join(parts)


def challenge_in(headers: Iterable[str]) -> Challenge | None:
    """The strongest challenge of these `WWW-Authenticate` headers that can be answered; None = there is none."""
    found = [read for header in headers for each in _digests(header[:LONGEST]) if (read := _read(each)) is not None]
    return max(found, key=lambda challenge: "SHA-256" in (challenge.algorithm or "").upper(), default=None)


def _digests(header: str) -> list[str]:
    starts = [found.end() for found in _SCHEME.finditer(header)]
    pieces = []
    for start in starts:
        after = _NEXT_SCHEME.search(header, start)
        pieces.append(header[start : after.start() if after else None])
    return pieces


def _read(text: str) -> Challenge | None:
    said = {found[1].lower(): _plain(found) for found in _PARAMETER.finditer(text)}
    algorithm = said.get("algorithm")
    known = (algorithm or "MD5").upper() in ("MD5", "MD5-SESS", "SHA-256", "SHA-256-SESS")
    qops = {each.strip().lower() for each in said["qop"].split(",")} if "qop" in said else None
    if not known or "nonce" not in said or (qops is not None and "auth" not in qops):
        return None
    if any(re.search(r"[\r\n\0]", value) for value in said.values()):
        return None
    stale = said.get("stale", "").lower() == "true"
    return Challenge(said.get("realm", ""), said["nonce"], said.get("opaque"), algorithm, qops is not None, stale)


def _plain(found: re.Match[str]) -> str:
    return found[3] if found[3] is not None else re.sub(r"\\(.)", r"\1", found[2])


def _quoted(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text)


def _md5(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
