"""TXN, TIMER, DELIV-8 and DELIV-9: half messages, timed messages and delayed messages become visible as their
producers asked for, or not at all.

Producers commit, roll back, forget and contradict themselves, recall messages, and stop. The broker, or the
group that elects its master, has the faults of the target `cluster`. An input is a program of
fuzz/deferred/program.py. The records of the log are judged by fuzz/deferred/judge.py.
"""

from functools import partial
from typing import Final

from mqproof.fuzz.cluster.faults import FAULT_BYTES, HEAD_BYTES
from mqproof.fuzz.deferred.program import FAULTS_MAX, Run, random_program
from mqproof.fuzz.simulation_target import Simulated
from mqproof.spec import catalogue

_IDS: Final = (
    *("DELIV-8", "DELIV-9", "DELIV-12", "FLUSH-7"),
    *(f"TXN-{number}" for number in range(1, 6)),
    *(f"TIMER-{number}" for number in range(1, 6)),
)

TESTING_ALL: Final = (0,)
"""Numbers of programs that together test every invariant; a campaign begins with them."""

TARGET = partial(
    Simulated,
    name="deferred-messages",
    invariants={each.name: each.statement for each in (catalogue.catalogue()[id_] for id_ in _IDS)},
    watched=("mqproof.impl.broker",),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=dict.fromkeys((*TESTING_ALL, *range(32))),
    play=lambda data, checked: Run(data, checked).run(),
)
