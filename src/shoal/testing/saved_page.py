"""Pages that `shoal try … --save-page` has saved, for tests of handlers: `list(detail(load_page("detail.html")))`."""

from shoal.api.saved_page import load_page

__all__ = ["load_page"]
