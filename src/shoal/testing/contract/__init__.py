from pathlib import Path

import pytest

_HERE = Path(__file__).parent

pytest.register_assert_rewrite(  # so that a failure shows the values that were compared
    *(".".join((__name__, *file.relative_to(_HERE).with_suffix("").parts)) for file in _HERE.rglob("[a-z]*.py"))
)
