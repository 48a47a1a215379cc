"""The dimensions of the durability suite, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.flush.session import Session
from mqproof.conformance.suites.flush.steps import SYSTEM_CRASHES, End
from mqproof.conformance.suites.flush.target import Capability, Fault

UNCERTAIN_MAX: Final = 2
"""The maximum number of sends with an open outcome between two starts of the broker.

Each one multiplies the states that the oracle keeps.
"""
ENDS: Final = {
    End.KILL: Capability.KILL,
    End.POWER_LOSS: Capability.POWER_LOSS,
    End.OS_CRASH: Capability.OS_CRASH,
    End.SHUTDOWN: Capability.CLEAN_RESTART,
}
"""The ways in which a broker can stop, and the capability that each one needs."""

_SIZES: Final = {"1 byte": 1, "300 bytes": 300, "600 bytes, a segment holds one": 600}
_BATCHES: Final = {"one": 1, "three": 3, "six": 6}
_SYNCS: Final = "every fsync fails"
_NONE: Final = "none"
_SECONDS: Final = {crash: frozenset({ENDS[crash]}) for crash in sorted(SYSTEM_CRASHES)}
_ANY_END: Final = "|".join(End)

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "flush mode",
            (
                Value("SYNC_FLUSH", " SYNC_FLUSH,",
                      needs=frozenset({Capability.FLUSH_MODE, Capability.SYNC_FLUSH})),
                Value("ASYNC_FLUSH", " ASYNC_FLUSH,",
                      needs=frozenset({Capability.FLUSH_MODE, Capability.ASYNC_FLUSH})),
            ),
            opens=True,
        ),
        Dimension("queues", (Value("1", r" 1 queue\(s\)"), Value("2", r" 2 queue\(s\)")), opens=True),
        Dimension("body", tuple(Value(name, rf"\({size} bytes\)") for name, size in _SIZES.items())),
        Dimension(
            "batch",
            tuple(
                Value(name, rf"(?:^send .*\n){{{count}}}^min", rf"(?:^send .*\n){{{count + 1}}}^min")
                for name, count in _BATCHES.items()
            ),
        ),
        Dimension(
            "consumer",
            (
                Value("reads nothing", hides="^pull from"),
                Value("reads", "^pull from", "^commit offset"),
                Value("commits", "^commit offset", needs=frozenset({Capability.COMMIT_OFFSET})),
            ),
        ),
        Dimension(
            "disturbance",
            (
                Value(_NONE, hides="^disturb|^every fsync"),
                Value(_SYNCS, "^every fsync", needs=frozenset({Capability.SYNC_FAILURE})),
                *(Value(fault, f"^disturb: {fault}$", needs=frozenset({Capability(fault.value)}))
                  for fault in Fault),
            ),
        ),
        Dimension(
            "last send",
            (
                Value("awaited", hides=r"\(abandoned\)"),
                Value("abandoned", r"\(abandoned\)", needs=frozenset({Capability.ABANDON})),
            ),
        ),
        Dimension(
            "end",
            tuple(
                Value(end, rf"^{end}\n(?:(?:{_ANY_END})\n)?restart", needs=frozenset({needed}))
                for end, needed in ENDS.items()
            ),
        ),
        Dimension(
            "second end",
            (
                Value(_NONE, rf"^(?:{_ANY_END})\nrestart"),
                *(Value(end, rf"^(?:{_ANY_END})\n{end}\nrestart", needs=needed)
                  for end, needed in _SECONDS.items()),
            ),
        ),
    ),
    (
        Infeasible(("disturbance", _SYNCS), ("end", End.SHUTDOWN),
                   "a broker whose fsyncs fail promises nothing for a clean exit"),
    ),
)  # fmt: skip


def scenario(session: Session, row: Row) -> None:
    """Send a batch, read, disturb the broker, and stop and restart it."""
    size, queue = _SIZES[row["body"]], session.setup.queues - 1
    if session.uncertain:
        _stop(session, next(iter(_ends(session)), None))
    for number in range(_BATCHES[row["batch"]]):
        _send(session, number % session.setup.queues, size)
    session.bounds(queue)
    if row["consumer"] != "reads nothing":
        session.pull(queue, 32)
        session.pull(0, 32)
    if row["consumer"] == "commits":
        for each in {queue, 0}:
            if session.positions[each] > session.committed[each]:
                session.commit(each)
    _disturb(session, row["disturbance"], queue, size)
    if row["last send"] == "abandoned" and session.uncertain < UNCERTAIN_MAX and not session.dead:
        session.abandon(queue, size)
    if "end" in row:
        second = row.get("second end", _NONE)
        _stop(session, End(row["end"]), None if second == _NONE else End(second))
    if not session.dead:
        session.drain()


def _send(session: Session, queue: int, size: int) -> None:
    if session.uncertain < UNCERTAIN_MAX:
        session.send(queue, size)


def _disturb(session: Session, disturbance: str, queue: int, size: int) -> None:
    if disturbance == _NONE:
        return
    if disturbance == _SYNCS:
        session.fail_syncs()
        _send(session, queue, size)
        session.drain()
        return
    session.disturb(Fault(disturbance))
    _send(session, queue, size)
    session.calm()
    session.drain()


def _ends(session: Session) -> list[End]:
    return [end for end, needed in ENDS.items() if needed in session.target.capabilities]


def _stop(session: Session, end: End | None, second: End | None = None) -> None:
    if end is not None:
        session.end(end)
        if second is not None:
            session.end(second)
        session.restart()
