"""Tests the limits of a real process: its number of open files, and how many of them are connections."""

import subprocess
import sys

import pytest

from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

LOOK = """
import resource, sys
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
soft, hard = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
runtime = production(AsyncioNetwork())
print(resource.getrlimit(resource.RLIMIT_NOFILE), runtime.files_max, runtime.connections_max)
"""


@pytest.mark.parametrize("soft", [64, 400])
def test_a_process_uses_its_limit_of_open_files_and_a_quarter_for_connections(soft: int) -> None:
    looked = subprocess.run(
        [sys.executable, "-c", LOOK, str(soft), "400"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert looked.stdout == "(400, 400) 400 100\n"


def test_where_the_limit_allows_it_a_listener_accepts_10_000_connections() -> None:
    loop = SimulatedLoop()
    assert simulated(loop, SimulatedNetwork()).connections_max == 10_000
    loop.close()
