"""Object storage by URL, with obstore: S3 and what speaks like it, Google Cloud, Azure.

An object appears when all of it has been sent; until then it is a temporary file here. Who we are is said by the
environment (`AWS_ACCESS_KEY_ID`, …) and never by the URL, which may stand in logs and shells.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from shoal.errors import UsageError
from shoal.runs.export.places.local_file import IfExists, exists_already

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "gs", "az")
NEEDS = ("obstore", "s3")
"""Library and extra."""

_KNOWN = ("endpoint", "region")
_PATIENCE: Any = {"max_retries": 3}


@dataclass(frozen=True, slots=True)
class StoredObject:
    """`s3://bucket/prefix/items.jsonl?endpoint=https://…&region=…`. `endpoint`, `region`: None = the usual one."""

    scheme: str
    bucket: str
    key: str
    endpoint: str | None = None
    region: str | None = None

    def refuse_existing(self, if_exists: IfExists) -> None:
        """Ask the storage, which must answer: so that a run does not work for hours towards what cannot be."""
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

        if if_exists is IfExists.APPEND:
            raise UsageError(f"The output {self} cannot be appended to; objects are replaced as a whole (--replace).")
        try:
            self._open().head(self.key)
        except FileNotFoundError:
            return
        except BaseError as error:
            raise self._failed(error) from error
        if if_exists is IfExists.REFUSE:
            raise exists_already(str(self))

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """A stream that becomes the object if the block ends well."""
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

        with TemporaryFile() as draft:
            yield cast("BinaryIO", draft)
            draft.seek(0)
            try:
                self._open().put(self.key, cast("BinaryIO", draft))
            except (BaseError, FileNotFoundError) as error:
                raise self._failed(error) from error

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}"

    def _open(self) -> ObjectStore:
        from obstore.store import S3Store, from_url  # noqa: PLC0415 - an extra

        if self.scheme != "s3":
            return from_url(f"{self.scheme}://{self.bucket}", retry_config=_PATIENCE)
        options: dict[str, Any] = {"region": self.region} if self.region else {}
        if self.endpoint:
            options |= {"endpoint": self.endpoint, "client_options": {"allow_http": self.endpoint.startswith("http:")}}
        return S3Store(self.bucket, retry_config=_PATIENCE, **options)

    def _failed(self, error: Exception) -> UsageError:
        first = str(error).strip().splitlines()[0]
        return UsageError(f"The output {self} cannot be used: {first[:300]}")


def object_for(target: str) -> StoredObject:
    """The object that a URL means. Raises UsageError for one that cannot be read."""
    parts = urlsplit(target)
    key = unquote(parts.path.lstrip("/"))
    options = dict(parse_qsl(parts.query))
    unknown = [name for name in options if name not in _KNOWN or parts.scheme != "s3"]
    if not parts.netloc or "@" in parts.netloc or not key or key.endswith("/") or unknown:
        raise UsageError(
            f"The output {parts.scheme}://… is to be written as {parts.scheme}://BUCKET/PATH/items.jsonl"
            f"{' (for S3 also ?endpoint=…&region=…)' if parts.scheme == 's3' else ''}; "
            "keys and passwords come from the environment."
        )
    return StoredObject(parts.scheme, parts.netloc, key, options.get("endpoint"), options.get("region"))
