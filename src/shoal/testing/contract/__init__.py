import pytest

pytest.register_assert_rewrite(  # so that a failure shows the values that were compared
    *(
        f"{__name__}.{part}"
        for part in ("scene", "enqueue", "claim", "clocks", "settlements", "leases", "lanes", "runs", "results")
    )
)
