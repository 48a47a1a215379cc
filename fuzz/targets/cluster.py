"""What FLUSH, REPL, RAFT and DELIV promise of a cluster (name servers, a master, perhaps its slave, or three
brokers that elect their master, producers and consumers), whatever happens to its machines, processes, disks,
clocks and network; and once that ends, that a master serves, its slave catches up or its group has one log,
and consumers are given what they were promised.

An input is a program for a whole cluster in simulation (fuzz/cluster/program.py). What was seen is judged by
conformance's checkers and, of the members of a group, by fuzz/raft/judge.py.
"""

from functools import partial
from typing import Final

from mqproof.fuzz.cluster.program import FAULT_BYTES, FAULTS_MAX, HEAD_BYTES, Run, random_program
from mqproof.fuzz.simulation_target import Simulated
from mqproof.spec import catalogue

_IDS: Final = (
    *("FLUSH-1", "FLUSH-2", "FLUSH-3", "FLUSH-4", "FLUSH-5", "FLUSH-7", "FLUSH-8"),
    *("REPL-1", "REPL-2", "REPL-3", "REPL-4", "REPL-5"),
    *(f"RAFT-{number}" for number in range(1, 9)),
    *("DELIV-1", "DELIV-2", "DELIV-4", "DELIV-5", "DELIV-12"),
)

TARGET = partial(
    Simulated,
    name="cluster",
    invariants={each.name: each.statement for each in (catalogue.catalogue()[id_] for id_ in _IDS)},
    watched=("mqproof.impl.replication", "mqproof.impl.dledger"),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=range(32),
    play=lambda data, checked: Run(data, checked).run(),
)
