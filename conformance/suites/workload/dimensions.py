"""The dimensions of a workload, and the script of each of its faults.

The pairs are counted for each fault: it and the requests that begin within WINDOW_S.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, values_named
from mqproof.conformance.history.lines import Commit, Consume, Fault, Line, Poll, Query, Send, Type
from mqproof.conformance.history.record import CLOSERS

SIMULATED: Final = (
    "kill", "shutdown", "crash_os", "lose_power", "cut", "isolate", "lose_requests", "lose_answers", "delay",
    "slow_disk", "full_disk",
)  # fmt: skip
"""The faults of our simulated cluster."""
WINDOW_S: Final = 15
"""A request that begins within this time after a fault counts with it: it meets what the fault has left."""
_NANOSECONDS: Final = 1_000_000_000
_TOPICS: Final = {"plain": "send", "orders": "send by key", "later": "delayed send"}
_BATCH: Final = "batch"
_NAMES: Final = {
    Poll: "poll",
    Consume: "listener",
    Commit: "commit or query of an offset",
    Query: "commit or query of an offset",
}

DIMENSIONS: Final = Dimensions(
    (
        Dimension("fault", values_named(SIMULATED, "^fault: ", "$")),
        Dimension(
            "request",
            values_named((*_TOPICS.values(), _BATCH, *dict.fromkeys(_NAMES.values())), "^request: ", "$"),
        ),
    )
)


def scripts(lines: Iterable[Line]) -> Iterator[str]:
    """Yield for each fault a text that names it and the requests that follow it."""
    begun: list[tuple[int, list[str]]] = []
    for line in lines:
        if isinstance(line, Fault) and line.value.kind not in CLOSERS:
            begun.append((line.time, [f"fault: {line.value.kind}"]))
        elif line.type is Type.INVOKE and (name := _request(line)):
            for at, script in begun:
                if line.time - at < WINDOW_S * _NANOSECONDS:
                    script.append(f"request: {name}")
    yield from ("\n".join(script) for _, script in begun)


def _request(line: Line) -> str:
    """Return the name of the request; empty for other lines."""
    if isinstance(line, Send):
        is_batch = len(line.value.messages) > 1
        return _BATCH if is_batch else _TOPICS.get(line.value.topic.rpartition("-")[2], "")
    return _NAMES.get(type(line), "")
