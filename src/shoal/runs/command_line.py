"""Commands that a person can paste: they find the same settings and the same store as the one that prints them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.config.load import FILE_NAME
from shoal.config.settings import NO_FILE, mask_url

if TYPE_CHECKING:
    from shoal.config.settings import Settings


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What has to be said to `shoal` so that it looks where this process looks.

    `engine`: the store, its password masked; None = the settings name it. `config`: the settings file; None = that of
    the current folder.
    """

    engine: str | None = None
    config: str | None = None

    def of(self, *words: str) -> str:
        """`shoal` with these words, for a shell."""
        return shlex.join(["shoal", *words, *self.options])

    @property
    def options(self) -> tuple[str, ...]:
        """The options alone."""
        config = () if self.config is None else ("--config", self.config)
        engine = () if self.engine is None else ("--engine", self.engine)
        return (*config, *engine)


def command_line(settings: Settings, engine: str | None) -> CommandLine:
    """How to find these settings again. `engine`: as the user gave it; None = not at all."""
    config = None if settings.source in (FILE_NAME, NO_FILE) else settings.source
    return CommandLine(None if engine is None else mask_url(settings.engine), config)
