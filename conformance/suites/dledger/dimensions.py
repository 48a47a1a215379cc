"""The dimensions of the suite of DLedger groups.

`conformance/subjects/group_run.py` meets a row of them after the drawn steps of a run.
"""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Value, values_named

FAULT: Final = "fault"
ENTRIES: Final = "entries before it"
UNCONFIRMED: Final = "entries without a quorum"
LASTS: Final = "the fault lasts"
AFTERWARDS: Final = "afterwards"

COUNTS: Final = {"1": 1, "more than a segment": 12}
BODY_BYTES: Final = {"1": 10, "more than a segment": 1000}
LASTS_S: Final = {"less than a heartbeat": 0.5, "longer than an election": 12.0}

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            FAULT,
            values_named(
                ("leader is killed", "leader loses its power", "leader is cut off", "follower is killed",
                 "follower loses its power", "follower is cut off", "whole group loses its power"),
                "^the ",
            ),
        ),
        Dimension(ENTRIES, values_named(COUNTS, "^entries before the fault: ")),
        Dimension(
            UNCONFIRMED,
            (Value("none", "^no entry lacks a quorum"), Value("some", "^an entry lacks a quorum")),
        ),
        Dimension(LASTS, values_named(LASTS_S, "^the fault lasts ")),
        Dimension(
            AFTERWARDS,
            values_named(
                ("an append", "a transfer", "two candidates", "the leader is killed"), "^afterwards "
            ),
        ),
    )
)  # fmt: skip
