"""Draws a cell's counterexample, and describes in words what happened to the message."""

from typing import Any, Final

from mqproof.report.sequence import render
from mqproof.spec.drawing import draw
from mqproof.spec.drawing_tables import TABLES
from mqproof.spec.guarantee.matrix import Cell, Outcome
from mqproof.spec.tlc.trace import Trace
from mqproof.spec.tlc.values import State

FAULT_NAMES: Final = {
    "clean": "orderly stop and start",
    "process": "process crash",
    "os": "system crash",
    "power": "power loss",
    "disk": "disk destroyed",
    "machine": "machine destroyed",
    "flip": "flipped bit in a record",
    "lost": "lost write of a record",
}
_BROKEN: Final = {
    Outcome.ERROR: "NoLoss",
    Outcome.SILENT: "NoSilentLoss",
    Outcome.SLAVE: "NoAckedLost",
    Outcome.GONE: "NoAckedGone",
}
"""The operator of Guarantee.tla that the cell violates."""


def picture(cell: Cell, outcome: Outcome, trace: Trace) -> str:
    """Return the path to the cell's outcome, as SVG."""
    setup = cell.setup
    faults = ", ".join(FAULT_NAMES[fault] for fault in cell.faults)
    title = f"{setup.flush}, {setup.replication}, {setup.producer} sends: {faults}"
    why = _why(outcome, trace.steps[-1].state)
    return render(draw(trace, title, TABLES["Guarantee"], _BROKEN[outcome], why))


def file_name(cell: Cell) -> str:
    """Return the file name of the cell's picture."""
    setup = cell.setup
    return (
        "-".join((setup.flush, setup.replication, setup.producer, *cell.faults)).lower().replace("_", "-")
        + ".svg"
    )


def _why(outcome: Outcome, end: State) -> str:
    state: Any = end
    message, answer = next(
        (message, answer)
        for message, answer in state["answer"].items()
        if answer != "elsewhere" and not any(message in log for log in _read_logs(state))
    )
    reason = (
        f"its send returned {answer}, without an error"
        if answer != "silence"
        else "oneway sends are not answered"
    )
    match outcome:
        case Outcome.ERROR:
            return f"{message} is lost, and the sender received an error: it may send again."
        case Outcome.SILENT:
            return f"{message} is lost without an error: {reason}."
        case Outcome.SLAVE:
            return (
                f"{message} was answered with SEND_OK. Consumers read from the master, which lacks it."
                " Only the slave has it, and no data flows from the slave to the master."
            )
    if any(state.get("damaged", {}).values()):
        return f"{message} was answered with SEND_OK, its record is damaged, and no other node has it."
    return f"{message} was answered with SEND_OK, and no node has it any more."


def _read_logs(state: Any) -> list[tuple[str, ...]]:
    """Return the logs that consumers read: the master's while it runs, otherwise the slave's.

    They lack the damaged records.
    """
    running = [node for node in ("master", "slave") if state["up"][node] == "running"]
    damaged = state.get("damaged", {})
    return [
        tuple(each for place, each in enumerate(state["log"][node], 1) if place not in damaged.get(node, ()))
        for node in running[:1]
    ]
