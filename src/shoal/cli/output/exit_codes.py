"""What stands around every command: errors become sentences, and a closed pipe is quiet."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from shoal import __version__
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OK, FAILURES, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; done, but some of it failed; cannot be done as asked; stopped by a signal."""

_debug: ContextVar[bool] = ContextVar("debug", default=False)

_COMMAND_ERROR = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException")


def say(text: str) -> None:
    """One line for the person at the terminal. Data goes to stdout, this does not."""
    with suppress(BrokenPipeError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def complain(text: str) -> None:
    """One line about what went wrong."""
    say(f"shoal: {text}")


def wants_tracebacks() -> bool:
    """Whether `--debug` was given."""
    return _debug.get()


def framed(command: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run the command line and answer its exit code. Nothing but KeyboardInterrupt's code 130 leaves by a traceback.

    `--debug` may stand anywhere; it adds the traceback to what is said.
    """
    debug = "--debug" in arguments
    _debug.set(debug)
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        code = command(args=rest, prog_name="shoal", standalone_mode=False)
        _flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return OK
    except Exception as error:  # noqa: BLE001 - this is where all errors end
        return _report(error, debug=debug)
    return code if isinstance(code, int) else OK


def _report(error: Exception, *, debug: bool) -> int:
    while isinstance(error, ExceptionGroup):  # what ends a group of tasks is what went wrong in the first of them
        error = error.exceptions[0]
    if isinstance(error, _COMMAND_ERROR):
        return _usage(error)
    if isinstance(error, ShoalError):
        complain(str(error))
    else:
        where = f"Shoal {__version__}, Python {platform.python_version()}, {platform.system()}"
        complain(
            f"this should not have happened ({type(error).__name__}: {error}). Please report it with what you did, "
            f"the output of the same command with --debug, and: {where}."
        )
    if debug:
        traceback.print_exception(error)
    return USAGE


def _usage(error: Any) -> int:
    """A command line that cannot be understood; the answer to no arguments at all is the help, which was printed."""
    message = str(error.format_message()).strip()
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        say(message)
        return USAGE
    hint = f" See `{context.command_path} --help`." if context is not None else ""
    complain(f"{message}{'' if message.endswith(('.', '?')) else '.'}{hint}")
    return USAGE


def _flush() -> None:
    sys.stdout.flush()


def _forget_stdout() -> None:
    """Whoever read our output has gone (`shoal items … | head`): let the interpreter's last flush find no pipe."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
