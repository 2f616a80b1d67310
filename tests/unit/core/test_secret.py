"""Secrets do not print."""

from __future__ import annotations

import pickle
import traceback

import pytest

from shoal.core.secrets.secret import Secret, SecretBytes


def test_a_secret_does_not_print() -> None:
    secret, header = Secret("hunter2"), SecretBytes(b"hunter2")
    shown = [f"{secret} {secret!r} {secret!s:>9} {[secret]}", f"{header!r} {header!s}"]
    shown += [str({"headers": [(b"authorization", header)]}), str(ValueError(secret, header))]
    shown += traceback.format_exception(KeyError(header, secret))
    assert "hunter2" not in " ".join(shown)
    assert secret.reveal() == "hunter2"
    assert header == b"hunter2"


def test_it_is_compared_but_not_stored() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    with pytest.raises(TypeError):
        pickle.dumps(Secret("a"))
