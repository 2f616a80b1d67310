"""The SQL of this engine: one statement or function per file in `sql/`, named as a verb."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

SCHEMA: Final = "schema"

PLANNED: Final = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
"""How verbs are planned. They handle small batches against tables of any size, so each way leads through an index, and
a plan that was made while a table was empty is still the right one when it has grown."""

VERBS: Final = (
    "create_run",
    "change_run",
    "resume_run",
    "enqueue",
    "exchange",
    "renew",
    "sweep",
    "requeue_dead",
    "purge_dead",
    "forget_notes",
    "put_exits",
    "remove_exits",
    "ban_exit",
    "release_exit",
    "write_cache",
    "hold_cache",
    "notice_restore",
    "find_leases",
    "submit_jobs",
    "expire_jobs",
    "clear_callbacks",
    "write_record",
    "delete_record",
)

MOVES: Final = (
    "turn_run",
    "count_held",
    "pack_run",
    "pack_tasks",
    "pack_letters",
    "pack_items",
    "pack_keys",
    "pack_endings",
    "pack_sites",
    "arrive_run",
    "unpack_tasks",
    "unpack_letters",
    "unpack_items",
    "unpack_keys",
    "unpack_endings",
    "unpack_sites",
    "count_run",
    "count_stored",
    "forget_run",
)
"""What `moving` calls. Planned as verbs are."""

LOOKS: Final = (
    "read_items",
    "read_runs",
    "read_dead",
    "read_workers",
    "read_scrapers",
    "read_sites",
    "read_sites_of_queue",
    "read_slots",
    "read_whereabouts",
    "read_notes",
    "read_exits",
    "read_cache",
    "find_holders",
    "find_jobs",
    "read_jobs",
    "read_results",
    "read_backlogs",
    "read_callbacks",
    "read_records",
)


def _read_all() -> dict[str, str]:
    folder = files(__package__).joinpath("sql")
    return {
        entry.name.removesuffix(".sql"): entry.read_text() for entry in folder.iterdir() if entry.name.endswith(".sql")
    }


STATEMENTS: Final = _read_all()

FUNCTIONS: Final = tuple(
    name for name in sorted(STATEMENTS) if STATEMENTS[name].lstrip("-").find("CREATE FUNCTION") > 0
)
