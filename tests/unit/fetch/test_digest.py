"""Digest authentication, held against the examples of its standards."""

from __future__ import annotations

import pytest

from shoal.fetch.digest import Challenge, challenge_in

NONCE = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
OWN = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
OPAQUE = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
ASKED = 'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={}, nonce="{}", opaque="{}"'
MUFASA = ("Mufasa", "Circle of Life", "GET", "/dir/index.html")


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_examples_of_rfc_7616(algorithm: str, response: str) -> None:
    challenge = challenge_in([ASKED.format(algorithm, NONCE, OPAQUE)])
    assert challenge is not None
    answer = challenge.answer(*MUFASA, count=1, own_nonce=OWN)
    assert f'response="{response}"' in answer
    assert answer.startswith('Digest username="Mufasa", realm="http-auth@example.org"')
    for said in (f'opaque="{OPAQUE}"', f'cnonce="{OWN}"', "qop=auth", "nc=00000001", f"algorithm={algorithm}"):
        assert said in answer


def test_the_example_of_rfc_2617() -> None:
    challenge = challenge_in(
        ['Digest realm="testrealm@host.com", qop="auth", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc"']
    )
    assert challenge is not None
    answer = challenge.answer("Mufasa", "Circle Of Life", "GET", "/dir/index.html", count=1, own_nonce="0a4f113b")
    assert 'response="6629fae49393a05397450978507c4ef1"' in answer


def test_of_several_challenges_the_strongest_is_answered() -> None:
    together = f'Basic realm="a", {ASKED.format("MD5", "m", "o")}, {ASKED.format("SHA-256", "s", "o")}'
    for headers in ([together], ["Basic realm=x", ASKED.format("MD5", "m", "o"), ASKED.format("SHA-256", "s", "o")]):
        challenge = challenge_in(headers)
        assert challenge == Challenge("http-auth@example.org", "s", "o", "SHA-256", qop=True, is_stale=False)


def test_without_qop_as_of_old() -> None:
    challenge = challenge_in(['digest realm="a\\"b", nonce=n, stale=TRUE'])
    assert challenge == Challenge('a"b', "n", None, None, qop=False, is_stale=True)
    assert "nc=" not in challenge.answer(*MUFASA, count=1, own_nonce="x")
    assert 'realm="a\\"b"' in challenge.answer(*MUFASA, count=1, own_nonce="x")


@pytest.mark.parametrize(
    "header",
    ["", "Basic realm=x", 'Digest realm="x"', "Digest nonce=n, algorithm=SHA-512-256", 'Digest nonce=n, qop="auth-int"',
     "Digest " * 1000],
)  # fmt: skip
def test_what_cannot_be_answered_is_none(header: str) -> None:
    assert challenge_in([header]) is None
