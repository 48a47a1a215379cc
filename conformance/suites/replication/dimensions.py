"""The dimensions of the suite of a master and its slave.

`conformance/subjects/pair_run.py` sets up a pair by a row of them, and meets the row after the drawn steps.
"""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Value, values_named

FLUSH: Final = "flush"
REPLICATED: Final = "replication"
WAITING: Final = "waiting"
BATCH: Final = "messages at once"
FAULT: Final = "fault"
MEANWHILE: Final = "sends during the fault"
LASTS: Final = "the fault lasts"
AFTERWARDS: Final = "afterwards"

BATCHES: Final = {"1": 1, "3": 3, "12": 12}
LASTS_S: Final = {"at once": 0.0, "less than a time-out": 1.0, "longer than all time-outs": 45.0}

DIMENSIONS: Final = Dimensions(
    (
        Dimension(FLUSH, values_named(("ASYNC_FLUSH", "SYNC_FLUSH"), "^a pair, ")),
        Dimension(REPLICATED, values_named(("SYNC_MASTER", "ASYNC_MASTER"), "^a pair, .*")),
        Dimension(
            WAITING,
            (Value("for the slave", r"^send m\d+: "), Value("not", r"^send m\d+ without waiting: ")),
        ),
        Dimension(BATCH, values_named(BATCHES, after=" messages? at once")),
        Dimension(
            FAULT,
            values_named(
                ("slave is killed", "slave loses its power", "master is killed", "master loses its power",
                 "link is cut", "master stops", "slave stops"),
                "^the ",
            ),
        ),
        Dimension(MEANWHILE, (Value("none", "^nothing is sent"), Value("some", "^some are sent"))),
        Dimension(LASTS, values_named(LASTS_S, "^the fault lasts ")),
        Dimension(
            AFTERWARDS, values_named(("a send", "both restart", "the master is killed"), "^afterwards ")
        ),
    )
)  # fmt: skip
