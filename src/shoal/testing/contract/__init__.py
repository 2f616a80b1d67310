from pathlib import Path

import pytest

pytest.register_assert_rewrite(  # so that a failure shows the values that were compared
    *(f"{__name__}.{file.stem}" for file in Path(__file__).parent.glob("[a-z]*.py"))
)
