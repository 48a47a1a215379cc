"""ElectionSafety, LeaderAppendOnly, LogMatching, LeaderCompleteness, CommittedStable, VoteOncePerTerm,
RecoveredPrefix: they hold for a DLedger group under any faults of members, machines, clocks and network.

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
        "LeaderAppendOnly": "a leader cuts and replaces nothing of its log",
        "LogMatching": "index and term say which entry it is, and which ones stand before it",
        "LeaderCompleteness": "what was committed is in the log of every later leader",
        "CommittedStable": "what a member takes for committed is what was committed there, and it has it",
        "VoteOncePerTerm": "a member votes once in a term, also after a restart",
        "RecoveredPrefix": "a member comes back with a prefix of its log, nothing altered or invented",
        "LeaderEventually": "once faults end somebody leads all members, within a minute",
        "LogsConverge": "once faults end all members have one log, committed, within two minutes",
        "NoAckedLost": "what was acknowledged is in the log of every member at last",
    },
    watched=("mqproof.impl.dledger",),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=_SEEDS,
    play=lambda data, checked: Run(data, checked).run(),
)
