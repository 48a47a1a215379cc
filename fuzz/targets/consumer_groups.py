"""DELIV-3, 6, 7, 8, 10, 11 and 13: owners, retries, delays, filters, broadcast and order of consumer groups.

Groups of all kinds consume while members join and leave, and while broker, name servers and network have the
faults of the target `cluster`. An input is a program of fuzz/groups/program.py. The observations of the
clients are a history, which the rules of histories judge (fuzz/groups/judge.py).
"""

from functools import partial
from typing import Final

from mqproof.fuzz.cluster.faults import FAULT_BYTES, HEAD_BYTES
from mqproof.fuzz.groups.program import FAULTS_MAX, Run, random_program
from mqproof.fuzz.simulation_target import Simulated
from mqproof.spec import catalogue

_IDS: Final = tuple(f"DELIV-{number}" for number in (1, 2, 3, 6, 7, 8, 10, 11, 13))

TESTING_ALL: Final = (0,)
"""Numbers of programs that together test every invariant; a campaign begins with them."""

TARGET = partial(
    Simulated,
    name="consumer-groups",
    invariants={each.name: each.statement for each in (catalogue.catalogue()[id_] for id_ in _IDS)},
    watched=("mqproof.impl.broker", "mqproof.impl.client"),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=dict.fromkeys((*TESTING_ALL, *range(32))),
    play=lambda data, checked: Run(data, checked).run(),
)
