"""The dimensions of the suite of routes.

`conformance/subjects/convergence_run.py` meets a row of them after the drawn steps of a run.
"""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Value

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
            tuple(
                Value(name, f"^fault of {name}: ")
                for name in (
                    "a broker", "both brokers", "a name server", "both name servers",
                    "a broker and a name server",
                )
            ),
        ),
        Dimension(
            FAULT,
            tuple(
                Value(name, f"^fault of .*: {name}")
                for name in ("killed", "power lost", "cut off", "cut off from the client")
            ),
        ),
        Dimension(LASTS, tuple(Value(name, f"^the fault lasts {name}") for name in LASTS_S)),
        Dimension(
            MEANWHILE,
            tuple(
                Value(name, f"^during the fault, {name}")
                for name in ("nothing happens", "the other broker restarts", "a name server restarts")
            ),
        ),
    )
)  # fmt: skip
