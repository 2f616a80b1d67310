"""A gateway that asks for keys, and its operator."""

from __future__ import annotations

from dataclasses import dataclass

from support.command_line import shoal
from support.gateway_process import Served


@dataclass(frozen=True)
class Guarded:
    """A gateway with keys, and a key of it."""

    gateway: Served
    key: str

    def make_key(self, name: str, *options: str) -> str:
        made = shoal("keys", "create", name, "--engine", f"sqlite:///{self.gateway.folder}/shoal.db", *options)
        assert made.returncode == 0, made.stderr
        return f"Bearer {made.stdout.strip()}"

    def revoke(self, name: str) -> None:
        answer = shoal("keys", "revoke", name, "--engine", f"sqlite:///{self.gateway.folder}/shoal.db")
        assert answer.returncode == 0, answer.stderr
