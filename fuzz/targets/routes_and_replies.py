"""ROUTE-1 to 7 and REPLY-1 to 4: routes, the choice of brokers, and requests with replies.

Name servers, two masters and a slave have the faults of the target `cluster`; an operator makes a broker
read-only for some time. Producers send to any queue; requesters request, and a consumer replies, sometimes
too late. An input is a program of fuzz/routes/program.py, judged by fuzz/routes/judge.py.
"""

from functools import partial
from typing import Final

from mqproof.fuzz.cluster.faults import FAULT_BYTES, HEAD_BYTES
from mqproof.fuzz.routes.program import FAULTS_MAX, Run, random_program
from mqproof.fuzz.simulation_target import Simulated
from mqproof.spec import catalogue

_IDS: Final = (
    *(f"ROUTE-{number}" for number in range(1, 8)),
    *(f"REPLY-{number}" for number in range(1, 5)),
)

TESTING_ALL: Final = (2,)
"""Numbers of programs that together test every invariant; a campaign begins with them."""

TARGET = partial(
    Simulated,
    name="routes-and-replies",
    invariants={each.name: each.statement for each in (catalogue.catalogue()[id_] for id_ in _IDS)},
    watched=("mqproof.impl.namesrv", "mqproof.impl.client"),
    input_bytes_max=HEAD_BYTES + FAULTS_MAX * FAULT_BYTES,
    program=random_program,
    numbers=dict.fromkeys((*TESTING_ALL, *range(32))),
    play=lambda data, checked: Run(data, checked).run(),
)
