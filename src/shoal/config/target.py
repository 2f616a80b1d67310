"""From what stands on the command line to scrapers: `file.py`, `file.py:name`, `package.module:name`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shoal.api.handler import code_of
from shoal.api.scraper import Scraper
from shoal.errors import BadTarget, ShoalError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

Result = TypeVar("Result")
_loading: ContextVar[bool] = ContextVar("loading", default=False)
_SHOAL = str(Path(__file__).parent.parent)


@dataclass(frozen=True, slots=True)
class Target:
    """Where to look and for whom. `name`: None = whatever is there."""

    place: str
    name: str | None

    @property
    def is_file(self) -> bool:
        return self.place.endswith(".py") or "/" in self.place or self.place in (".", "..")


def folders_of(targets: Iterable[str]) -> list[Path]:
    """The folders of the files among some targets, each once. What is wrong with a target is said by who loads it."""
    places = [text.rpartition(":")[0] if ":" in text else text for text in targets]
    return list(dict.fromkeys(Path(place).parent for place in places if Target(place, None).is_file))


def load_scraper(target: str) -> Scraper:
    """The one scraper that a target means. Raises BadTarget if it means none or several."""
    found = load_scrapers([target])
    if len(found) > 1:
        names = ", ".join(scraper.name for scraper in found)
        raise BadTarget(f"{target} has several scrapers ({names}); choose one, as in `{target}:{found[0].name}`.")
    return found[0]


def load_scrapers(targets: Sequence[str]) -> list[Scraper]:
    """All scrapers that the targets mean, in order, each once.

    Raises BadTarget: nothing there, code that cannot be imported, no scraper in it, two different ones of one name.
    """
    found: dict[str, tuple[Scraper, str]] = {}
    for text in targets:
        target = _parse(text)
        module = _import_file(target) if target.is_file else _import_module(target)
        for scraper in _chosen(target, module):
            other, where = found.setdefault(scraper.name, (scraper, text))
            if other is not scraper:
                raise BadTarget(f"Two scrapers are called {scraper.name!r}, in {where} and in {text}; rename one.")
    return [scraper for scraper, _ in found.values()]


def names_beside(targets: Sequence[str]) -> list[str]:
    """The names of all scrapers where the targets are, also of those that they do not choose."""
    return [scraper.name for scraper in load_scrapers([text.rpartition(":")[0] or text for text in targets])]


def target_of(scraper: Scraper) -> str:
    """The target by which another process finds a scraper that this one has: where its handlers are defined.

    `TARGET`, if that is nowhere that a process could look, as for what was typed into a shell.
    """
    files = {code.co_filename for handler in scraper.handlers.values() if (code := code_of(handler.function))}
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) not in files:
            continue
        if "." in name:
            return f"{name}:{scraper.name}"
        path, here = Path(str(module.__file__)).resolve(), Path.cwd()
        return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{scraper.name}"
    return "TARGET"


def targets_of(scraper: Scraper) -> list[str]:
    """All targets that another process has to load to have a scraper with all its handlers: the files, or modules,
    that name it at their top; of these only those where handlers are defined, if there are any. None at all = it cannot
    be had there."""
    files = {code.co_filename for handler in scraper.handlers.values() if (code := code_of(handler.function))}
    naming = {
        str(module.__file__): name
        for name, module in list(sys.modules.items())
        if getattr(module, "__file__", None) and any(value is scraper for value in vars(module).values())
    }
    defining = {file: name for file, name in naming.items() if file in files} or naming
    return [f"{name if '.' in name else file}:{scraper.name}" for file, name in defining.items()]


def refuse_while_loading(act: str) -> None:
    """Raises UsageError if a target is being loaded at this moment: whoever loads it wants its scrapers only."""
    if _loading.get():
        guard = 'put it under `if __name__ == "__main__":`'
        raise UsageError(f"loading the file would {act}; {guard}, so that workers can load it, too.")


def _parse(text: str) -> Target:
    place, colon, name = text.rpartition(":")
    if not colon:
        place, name = text, ""
    elif not name or not place:
        raise BadTarget(
            f"The target {text!r} is not complete; write `file.py`, `file.py:name` or `package.module:name`."
        )
    return Target(place, name or None)


def _chosen(target: Target, module: ModuleType) -> list[Scraper]:
    """The scrapers among the module's own names: the one asked for (by variable or by scraper name), or all."""
    by_variable = {name: value for name, value in vars(module).items() if isinstance(value, Scraper)}
    scrapers = list({id(scraper): scraper for scraper in by_variable.values()}.values())
    if not scrapers:
        raise BadTarget(f"{target.place} has no scraper; make one with `{Path(target.place).stem} = Scraper(…)`.")
    if target.name is None:
        return scrapers
    if target.name in by_variable:
        return [by_variable[target.name]]
    named = [scraper for scraper in scrapers if scraper.name == target.name]
    if len(named) != 1:
        names = ", ".join(sorted({scraper.name for scraper in scrapers}))
        raise BadTarget(f"{target.place} has no scraper {target.name!r}; it has {names}.")
    return named


def _import_file(target: Target) -> ModuleType:
    """Run a file as `python file.py` would: its folder comes first where modules are looked for."""
    path = Path(target.place)
    if path.is_dir():
        raise BadTarget(f"{target.place} is a folder; name a file in it, such as {target.place.rstrip('/')}/books.py.")
    if not path.is_file():
        raise BadTarget(f"There is no file {target.place!r}.")
    path = path.resolve()
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return module
    _look_first_in(path.parent)
    name = path.stem if path.stem not in sys.modules else f"shoal_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadTarget(f"{target.place} is not a Python file; its name must end with .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    try:
        _run(target, lambda: loader.exec_module(module))
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _import_module(target: Target) -> ModuleType:
    """Import a module as `python -m` would: the current folder comes first."""
    _look_first_in(Path.cwd())
    importlib.invalidate_caches()  # a file written a moment ago counts too
    return _run(target, lambda: importlib.import_module(target.place))


def _run(target: Target, work: Callable[[], Result]) -> Result:
    """Run a user's code; whatever it raises becomes one sentence with the place in that code."""
    before = _loading.set(True)
    try:
        return work()
    except SyntaxError as error:
        where = f"{error.filename or target.place}, line {error.lineno}"
        raise BadTarget(f"{where}: this is not Python: {error.msg}.") from error
    except ModuleNotFoundError as error:
        if error.name and (target.place == error.name or target.place.startswith(f"{error.name}.")):
            raise BadTarget(
                f"There is no module {error.name!r}; for a file write `file.py` or `file.py:name`."
            ) from error
        where = _where(error, target)
        raise BadTarget(f"{where}: no module named {error.name!r}; install it, or correct the import.") from error
    except ShoalError as error:
        raise BadTarget(f"{_where(error, target)}: {error}") from error
    except SystemExit as error:
        guard = 'put what is meant for a script under `if __name__ == "__main__":`'
        raise BadTarget(f"{_where(error, target)}: the file ended the program while it was loaded; {guard}.") from error
    except Exception as error:
        text = " ".join(str(error).split())
        shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise BadTarget(f"{_where(error, target)}: loading it failed with {shown}.") from error
    finally:
        _loading.reset(before)


def _where(error: BaseException, target: Target) -> str:
    """File and line of the last step in the user's own code: what lies in or under the folder of the target."""
    folder = str(Path(target.place).resolve().parent if target.is_file else Path.cwd())
    steps = [
        step
        for step in traceback.extract_tb(error.__traceback__)
        if step.filename.startswith(folder)
        and "site-packages" not in step.filename
        and not step.filename.startswith(_SHOAL)
    ]
    if not steps:
        return target.place
    last = steps[-1]
    path = Path(last.filename)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{shown}, line {last.lineno}"


def _look_first_in(folder: Path) -> None:
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
