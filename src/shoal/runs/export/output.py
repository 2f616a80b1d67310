"""What `-o TARGET` means: a place, a form and a compression, by name. Asked early, so that nothing fails late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from shoal.config.settings import mask_url
from shoal.errors import UsageError
from shoal.runs.export.compression import NEEDS as COMPRESSION_NEEDS
from shoal.runs.export.compression import Compression
from shoal.runs.export.formats.choose import APPENDED, SURVEYED, Format, need
from shoal.runs.export.formats.choose import NEEDS as FORMAT_NEEDS
from shoal.runs.export.places import object_storage, table
from shoal.runs.export.places.local_file import STDOUT, IfExists, file_for, has_content
from shoal.runs.export.places.object_storage import StoredObject, object_for
from shoal.runs.export.places.table import UserTable, table_for

Place = Path | StoredObject | UserTable | None
"""None = standard output."""


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What is said beside the name of an output, for all of them.

    `format`: None = by the suffix; standard output is JSONL then. `columns`: None = all keys. `live`: items are written
    while the run works.
    """

    format: Format | None = None
    columns: tuple[str, ...] | None = None
    if_exists: IfExists = IfExists.REFUSE
    live: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """A place to export to, found to be usable. `target`: as it was given, which may have a password in it."""

    target: str
    place: Place
    format: Format = Format.JSONL
    compression: Compression | None = None
    columns: tuple[str, ...] | None = None
    if_exists: IfExists = IfExists.REFUSE
    live: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is a file or an object: something that exists, and can be replaced."""
        return isinstance(self.place, Path | StoredObject)

    @property
    def to_be_replaced(self) -> bool:
        """Whether, to write it again, one has to say so: it was to be replaced, or has been written meanwhile."""
        if self.if_exists is IfExists.REFUSE:
            return isinstance(self.place, Path) and has_content(self.place)
        return self.if_exists is IfExists.REPLACE

    @property
    def shown(self) -> str:
        """For people, without a password."""
        return "standard output" if self.place is None else mask_url(self.target)


def output_for(target: str, options: OutputOptions | None = None) -> Output:
    """What `-o TARGET` means. Raises UsageError with one sentence if it cannot be."""
    options = options or OutputOptions()
    scheme = urlsplit(target).scheme if "://" in target else ""
    if scheme in table.SCHEMES:
        return _table(target, options)
    if scheme in object_storage.SCHEMES:
        need(f"The output {scheme}://…", *object_storage.NEEDS)
        place: Place = object_for(target)
        name = str(place)
    elif scheme == "file":
        name = unquote(urlsplit(target).path)
        place = Path(name)
    elif scheme:
        known = ", ".join(f"{each}://" for each in ("file", *object_storage.SCHEMES, *table.SCHEMES))
        raise UsageError(f"The output {mask_url(target)!r} is of no known kind; known are files, {known}.")
    else:
        name, place = target, None if target == STDOUT else Path(target)
    output = _in_form(target, name, place, options)
    if isinstance(place, StoredObject):
        place.refuse_existing(options.if_exists)
    elif place is not None:
        file_for(str(place), options.if_exists)
    return output


def outputs_for(targets: Iterable[str | Path], options: OutputOptions | None = None) -> tuple[Output, ...]:
    """The same for several. Raises UsageError also if two of them are one."""
    found: dict[object, Output] = {}
    for target in targets:
        output = output_for(str(target), options)
        place = output.place.resolve() if isinstance(output.place, Path) else output.place
        if found.setdefault(place, output) is not output:
            raise UsageError(f"The output {output.shown!r} is given twice; each is written once.")
    return tuple(found.values())


def _in_form(target: str, name: str, place: Place, options: OutputOptions) -> Output:
    """Form and compression, by the suffixes of the name."""
    suffixes = [suffix.lower().removeprefix(".") for suffix in PurePosixPath(name).suffixes]
    compression = Compression(suffixes.pop()) if suffixes and suffixes[-1] in list(Compression) else None
    format_ = options.format or _format(target, place, suffixes[-1] if suffixes else "")
    if compression is not None and format_ is Format.PARQUET:
        raise UsageError(f"The output {target!r}: a .parquet file is compressed inside; leave .{compression} away.")
    for needed in (FORMAT_NEEDS.get(format_), COMPRESSION_NEEDS.get(compression) if compression else None):
        if needed is not None:
            need(f"The output {target!r}", *needed)
    output = Output(target, place, format_, compression, options.columns, options.if_exists, options.live)
    _check_appendable(output)
    return output


def _format(target: str, place: Place, suffix: str) -> Format:
    if place is None:
        return Format.JSONL
    try:
        return Format(suffix)
    except ValueError:
        known = ", ".join(f".{each}" for each in Format)
        more = " and ".join(f".{each}" for each in Compression)
        raise UsageError(f"The output {target!r} has no known suffix; known are {known}, with {more} behind.") from None


def _check_appendable(output: Output) -> None:
    known = " and ".join(f".{each}" for each in APPENDED)
    if output.if_exists is IfExists.APPEND and output.format not in APPENDED:
        raise UsageError(f"A .{output.format} file cannot be appended to; {known} can.")
    if not output.live:
        return
    if output.format not in APPENDED or output.compression or isinstance(output.place, StoredObject):
        raise UsageError(f"Only {known} files, standard output and tables can be written live, without compression.")
    if output.format in SURVEYED and output.columns is None:
        raise UsageError("A .csv that is written live must know its columns: choose them, as in --columns title,price.")


def _table(target: str, options: OutputOptions) -> Output:
    place = table_for(target, mask_url(target))
    if place.dialect == "postgresql":
        need("A table of PostgreSQL", "asyncpg", "postgres")
    if options.if_exists is IfExists.REPLACE:
        raise UsageError(
            f"A table is not replaced: items are added to {place.name!r} once each; empty it yourself, or name another."
        )
    if options.live and options.columns is None:
        raise UsageError("A table that is filled live must know its columns: choose them, as in --columns title,price.")
    return Output(target, place, columns=options.columns, if_exists=IfExists.APPEND, live=options.live)
