"""ElectionSafety, LeaderAppendOnly, LogMatching, LeaderCompleteness, CommittedStable, VoteOncePerTerm,
RecoveredPrefix, ReadsCurrent: they hold for a DLedger group under any faults of members, machines, clocks and
network.

After the faults end, LeaderEventually, LogsConverge and NoAckedLost hold too. An input is a program for a
group in simulation (fuzz/raft/program.py).
"""

from functools import partial
from typing import Final

from mqproof.fuzz.raft.program import FAULT_BYTES, FAULTS_MAX, HEAD_BYTES, Run, random_program
from mqproof.fuzz.simulation_target import Simulated

_SEEDS: Final = (17, *range(64))
"""Seed 17 tears an entry, which few seeds do."""

TARGET = partial(
    Simulated,
    name="dledger-group",
    invariants={
        "ElectionSafety": "at most one member leads in a term",
        "LeaderAppendOnly": "a leader never cuts or replaces entries of its log",
        "LogMatching": "index and term identify an entry and all entries before it",
        "LeaderCompleteness": "a committed entry is in the log of every later leader",
        "CommittedStable": "an entry that a member considers committed was committed, and the member has it",
        "VoteOncePerTerm": "a member votes once per term, even after a restart",
        "RecoveredPrefix": "a member restarts with a prefix of its log, no entry altered or invented",
        "ReadsCurrent": "no later leader has committed an entry while a leader may answer a client",
        "LeaderEventually": "once faults end, one member leads all others within a minute",
        "LogsConverge": "once faults end, all members have the same committed log within two minutes",
        "NoAckedLost": "an acknowledged entry is finally in the log of every member",
    },
    watched=("mqproof.impl.dledger",),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=_SEEDS,
    play=lambda data, checked: Run(data, checked).run(),
)
