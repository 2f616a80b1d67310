"""What this machine's own network has: addresses, and a way out; and who is away where there is no route."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from shoal.fetch.errors import translated
from shoal.fetch.own_network import has_address, has_default_route
from shoal.fetch.protocol import Stage

ALONE = ["unshare", "--map-root-user", "--net", sys.executable, "-c"]
"""In a network of its own, which has nothing."""

SAYS = """
import errno
from shoal.fetch.errors import translated
from shoal.fetch.own_network import has_address, has_default_route
no_route = translated(OSError(errno.ENETUNREACH, "no route"), None, 1, 1)
print(has_default_route(), has_address("127.0.0.1"), no_route.stage)
"""


@pytest.mark.parametrize(
    ("address", "is_here"), [("127.0.0.1", True), ("127.0.0.9", True), ("203.0.113.7", False), ("2001:db8::7", False)]
)
def test_which_addresses_are_here(address: str, is_here: bool) -> None:
    assert has_address(address) is is_here


@pytest.mark.parametrize("number", [errno.ENETUNREACH, errno.EHOSTUNREACH])
def test_where_something_leads_out_a_target_without_route_is_away_itself(number: int) -> None:
    told = translated(OSError(number, "no route"), None, 1, 1)
    assert (told.stage is Stage.NETWORK) is not has_default_route()
    assert translated(OSError(errno.ENETDOWN, "down"), None, 1, 1).stage is Stage.NETWORK


def test_where_nothing_leads_out_it_is_this_machine() -> None:
    answer = subprocess.run([*ALONE, SAYS], capture_output=True, text=True, check=False)
    if answer.returncode:
        pytest.skip("this user may not make a network of its own (unshare)")
    assert answer.stdout.split() == ["False", "True", "network"]
