"""The Lua of this engine: scripts in `lua/`, in folders by verb, each made of the pieces that its first line names.

Pieces that scripts of several folders need are in `lua/lib`. `{{NAME}}` stands for a constant of `shoal.core`.

What a partition holds, each name behind the tag `{prefix:partition}:`. <run> and <line> are numbers.

    meta                version, partitions, and the counters that number runs, lines, tasks and parcels
    runs, r:<run>       numbers of runs by their ids; what a run is, and its state
    c:<run>             counters of a run
    s:<run>:<bucket>    keys that a run has seen, as 64-bit numbers in 2**14 sets; those of a job in one, s:<run>:j
    e:<run>:<bucket>    how pages ended that were not done, by name, in 2**12 hashes; those of a job in one, e:<run>:j
    er:<run>            numbers of the reasons that these name
    lines, ln, lc, tot  lines by name, lines by number, their counts, counts by scraper and lane
    act:…, ql:<queue>   lines in use by scraper and lane, lines of a queue
    held                lines that are held back because their run is paused or cancelled
    site                rules, clocks, slots and rate limits of each site
    contested           sites where runs with different rules have met, by when a sweep last looked at them
    f:<line>            new sites of a line, in order; as long as such a site has one task, that is in its record
    d:<line>            all other sites of a line, by the time of their next visit
    q:<line>            the first ready tasks of each other site, packed
    o:…, z:…            the tasks behind those: a list, and a sorted set for what came back in between
    aside, w:<line>     tasks that do not wait for their site; those of them that wait for their time, by time
    a:<run>, h:<run>    delayed tasks and held tasks of a run
    x                   waiting tasks by the time they expire
    lease, le           leases by task, and by the time they run out
    wk, ws, wn, wm:…    workers: who they are, when they were seen, how many leases they hold, who is on a machine
    it:<run>, res       batches of items in order; ended runs by the time their results go
    dead:<run>, dz:…    dead letters, and their order
    ex, eh              exits: the book of them, and how well they do where that is not perfectly
    bx, b:<exit>        exits that may not visit some sites, and those sites, each by the end of that
    n:<stream>, nx      notes, and those that do not stay by the end of their time
    k:<key>             the cache
    jv, g:<run>         versions of jobs by id; for each group of a job, how many of its tasks have not ended
    j:<run>, jobs       what a run has besides if it is a job; all jobs by number, and
    jo:<owner>, jk      those of an owner, and of each of an owner's keys
    jqs, jq:…, je:…     queues of jobs; the jobs of each that have not ended, by number; those that ended lately
    jc, jx, jg          ended jobs with a callback; by the time their results go; and by the time when these have gone
    quota, rec:<kind>   what owners have used of their quotas; records
    out, outz, in       parcels for other partitions, their order, and those that arrived here
    cancelled, thaw, spread, revived    runs with something left to do for a sweep

A task is in exactly one place: packed with its site (site, q, o, z), aside, in its lease, or dead; its entry moves.
When a job is cancelled, its ready tasks are counted out at once (`emptied`); claims throw away what they meet of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha1
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from shoal.frontier.shared.rendering import CONSTANTS, render

_WITHIN = "return (function()"
"""What follows the prelude is a function of its own: Lua is slow to find names of the same one from inside others."""

_NEEDS = re.compile(r"-- needs: (.*)\n")


class Script(msgspec.Struct, frozen=True):
    """A script as the server runs it, and the name by which the server remembers it. `needs`: its pieces, in order."""

    text: str
    sha: str
    needs: tuple[str, ...]


def lua_texts(folder: Traversable | None = None) -> dict[str, str]:
    """What is in the files of `lua/`, by their names without folders. A name must not come twice."""
    texts: dict[str, str] = {}
    for entry in (folder or files("shoal.frontier.redis").joinpath("lua")).iterdir():
        if entry.is_dir():
            found = lua_texts(entry)
        else:
            found = {entry.name.removesuffix(".lua"): entry.read_text(encoding="utf-8")}
        if again := texts.keys() & found.keys():
            raise ValueError(f"There is more than one {', '.join(again)}.lua: name one of them otherwise.")
        texts |= found
    return texts


def make_scripts(texts: Mapping[str, str], constants: Mapping[str, int] = CONSTANTS) -> dict[str, Script]:
    """The scripts among these texts, each with its pieces. A text that does not say what it needs is a piece."""
    rendered = {name: render(text, constants) for name, text in texts.items()}
    scripts = {}
    for name, text in rendered.items():
        said = _NEEDS.match(text)
        if said is not None:
            needs = tuple(said[1].split())
            prelude, *pieces = (rendered[piece] for piece in needs)
            whole = "\n".join([prelude, _WITHIN, *pieces, text, "end)()"])
            scripts[name] = Script(whole, sha1(whole.encode()).hexdigest(), needs)  # noqa: S324 - as Redis names scripts
    return scripts


SCRIPTS: Final = make_scripts(lua_texts())
