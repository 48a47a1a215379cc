"""DELIV-10 and DELIV-12: what a consumer receives whose function runs in a filter server.

The function fails at some messages, until the consumer restarts with a correct one. Broker, name servers,
filter server and network have faults, and a stranger uploads damaged modules. An input is a program of
fuzz/filters/program.py. Running it needs the extra `mqproof[filter]`.
"""

from functools import partial
from typing import Final

from mqproof.fuzz.cluster.faults import FAULT_BYTES, HEAD_BYTES
from mqproof.fuzz.filters.program import FAULTS_MAX, Run, random_program
from mqproof.fuzz.simulation_target import Simulated
from mqproof.spec import catalogue

TESTING_ALL: Final = (0,)
"""Numbers of programs that together test every invariant; a campaign begins with them."""

TARGET = partial(
    Simulated,
    name="filter-server",
    invariants={
        each.name: each.statement
        for each in (catalogue.catalogue()[f"DELIV-{number}"] for number in (10, 12))
    },
    watched=("mqproof.impl.filter_server",),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=dict.fromkeys((*TESTING_ALL, *range(32))),
    play=lambda data, checked: Run(data, checked).run(),
)
