"""Files for browsers: the module for web pages that comes with Shoal, and a folder of the operator's own."""

from __future__ import annotations

from os import stat_result
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

OURS = Path(__file__).parent.parent / "static"


class Files(StaticFiles):
    """A folder as the web sees it: no way out of it, nothing hidden, and asked again by browsers each time (ETag)."""

    def lookup_path(self, path: str) -> tuple[str, stat_result | None]:
        """Where a path leads. Dot files, links that lead out of the folder and impossible names lead nowhere."""
        if not path.isprintable() or any(part.startswith(".") for part in Path(path).parts):
            return "", None
        try:
            return super().lookup_path(path)
        except OSError:
            return "", None

    async def get_response(self, path: str, scope: Any) -> Response:
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code == 405:
                raise
            raise HTTPException(404) from None

    def file_response(self, full_path: Any, stat_result: Any, scope: Any, status_code: int = 200) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        if str(full_path).endswith(".ts") and "content-type" in response.headers:  # not the video format of that name
            response.headers["Content-Type"] = "text/plain; charset=utf-8"
        return response


def folder_of_ours() -> Files:
    """What comes with Shoal, for `/static`."""
    return Files(directory=OURS)
