"""The dimensions of the suite of routes.

`conformance/subjects/convergence_run.py` meets a row of them after the drawn steps of a run.
"""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, values_named

NODES: Final = "nodes"
FAULT: Final = "fault"
LASTS: Final = "the fault lasts"
MEANWHILE: Final = "during the fault"

LASTS_S: Final = {
    "less than a heartbeat": 5.0,
    "longer than a client's interval": 40.0,
    "until brokers expire": 150.0,
}

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            NODES,
            values_named(
                ("a broker", "both brokers", "a name server", "both name servers",
                 "a broker and a name server"),
                "^fault of ", ": ",
            ),
        ),
        Dimension(
            FAULT,
            values_named(("killed", "power lost", "cut off", "cut off from the client"), "^fault of .*: "),
        ),
        Dimension(LASTS, values_named(LASTS_S, "^the fault lasts ")),
        Dimension(
            MEANWHILE,
            values_named(
                ("nothing happens", "the other broker restarts", "a name server restarts"),
                "^during the fault, ",
            ),
        ),
    )
)  # fmt: skip
