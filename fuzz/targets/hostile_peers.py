"""TRUST invariants: FieldsWithinLimits, SharesKept, PermissionRequired, StrangerNotCounted, BodiesBounded.

A stranger at every port and a faulty member of a group send valid requests of all codes, values at and beyond
limits, contradictions, damaged and repeated frames, at any moment. No acknowledged message may be lost or
altered, no SEND_OK may be false, the use of memory stays within its shares, and honest clients are served.

An input is a program of fuzz/hostile/program.py. Time is simulated, so a verdict does not depend on the load
of the machine.
"""

from functools import partial
from typing import Final

from mqproof.fuzz.hostile.program import ATTACK_BYTES, ATTACKS_MAX, HEAD_BYTES, Run, random_program
from mqproof.fuzz.simulation_target import Simulated
from mqproof.spec import catalogue

_IDS: Final = ("TRUST-1", "TRUST-11", "TRUST-12", "TRUST-13", "TRUST-14", "DELIV-1")

TARGET = partial(
    Simulated,
    name="hostile-peers",
    invariants={each.name: each.statement for each in (catalogue.catalogue()[id_] for id_ in _IDS)},
    watched=("mqproof.impl.remoting", "mqproof.impl.access", "mqproof.impl.dledger"),
    input_bytes_max=HEAD_BYTES + ATTACKS_MAX * ATTACK_BYTES,
    program=random_program,
    numbers=range(64),
    play=lambda data, checked: Run(data, checked).run(),
)
