"""The dimensions of the suite of DLedger groups.

`conformance/subjects/group_run.py` meets a row of them after the drawn steps of a run.
"""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Value

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
            tuple(
                Value(name, f"^the {name}")
                for name in (
                    "leader is killed", "leader loses its power", "leader is cut off", "follower is killed",
                    "follower loses its power", "follower is cut off", "whole group loses its power",
                )
            ),
        ),
        Dimension(ENTRIES, tuple(Value(name, f"^entries before the fault: {name}") for name in COUNTS)),
        Dimension(
            UNCONFIRMED,
            (Value("none", "^no entry lacks a quorum"), Value("some", "^an entry lacks a quorum")),
        ),
        Dimension(LASTS, tuple(Value(name, f"^the fault lasts {name}") for name in LASTS_S)),
        Dimension(
            AFTERWARDS,
            tuple(
                Value(name, f"^afterwards {name}")
                for name in ("an append", "a transfer", "two candidates", "the leader is killed")
            ),
        ),
    )
)  # fmt: skip
