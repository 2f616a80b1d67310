"""The Lua of this engine: one script per verb in `lua/`, made of the pieces that its first line names."""

from __future__ import annotations

import re
from hashlib import sha1
from importlib.resources import files
from typing import Final

import msgspec

_NEEDS = re.compile(r"^-- needs: (.*)$", re.MULTILINE)


class Script(msgspec.Struct, frozen=True):
    """A verb as the server runs it, and the name by which the server remembers it."""

    text: str
    sha: str


def _read_all() -> dict[str, Script]:
    folder = files(__package__).joinpath("lua")
    texts = {
        entry.name.removesuffix(".lua"): entry.read_text() for entry in folder.iterdir() if entry.name.endswith(".lua")
    }
    scripts = {}
    for name, text in texts.items():
        needs = _NEEDS.match(text)
        if needs is not None:
            whole = "\n".join([*(texts[piece] for piece in needs[1].split()), text])
            scripts[name] = Script(whole, sha1(whole.encode()).hexdigest())  # noqa: S324 - as Redis names scripts
    return scripts


SCRIPTS: Final = _read_all()
