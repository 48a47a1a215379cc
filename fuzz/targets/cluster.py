"""FLUSH, REPL, RAFT and DELIV invariants of a cluster under faults.

The cluster has name servers, producers and consumers, and either a master with an optional slave, or three
brokers that elect their master. Machines, processes, disks, clocks and the network may fail. After the faults
end, a master must serve. Its slave must catch up, or the group must have one log. Consumers must receive
every message promised to them.

An input is a program for a whole cluster in simulation (fuzz/cluster/program.py). The observations are judged
by conformance's checkers; the actions of group members are judged by fuzz/raft/judge.py.
"""

from functools import partial
from typing import Final

from mqproof.fuzz.cluster.faults import FAULT_BYTES, HEAD_BYTES
from mqproof.fuzz.cluster.program import FAULTS_MAX, Run, random_program
from mqproof.fuzz.simulation_target import Simulated
from mqproof.spec import catalogue

_IDS: Final = (
    *("FLUSH-1", "FLUSH-2", "FLUSH-3", "FLUSH-4", "FLUSH-5", "FLUSH-7", "FLUSH-8"),
    *("REPL-1", "REPL-2", "REPL-3", "REPL-4", "REPL-5"),
    *(f"RAFT-{number}" for number in range(1, 9)),
    *("DELIV-1", "DELIV-2", "DELIV-4", "DELIV-5", "DELIV-12"),
)

TESTING_ALL: Final = (0, 5, 10, 15, 20, 32)
"""Numbers of programs that together test every invariant; a campaign begins with them."""

TARGET = partial(
    Simulated,
    name="cluster",
    invariants={each.name: each.statement for each in (catalogue.catalogue()[id_] for id_ in _IDS)},
    watched=("mqproof.impl.replication", "mqproof.impl.dledger"),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=dict.fromkeys((*TESTING_ALL, *range(32))),
    play=lambda data, checked: Run(data, checked).run(),
)
