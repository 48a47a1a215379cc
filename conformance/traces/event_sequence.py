"""Checks that an event log is complete."""

from collections.abc import Iterable

from mqproof.spec.events import Event, EventError


def check_dense(log: Iterable[Event], where: str) -> None:
    """Check that no events are missing.

    Raises:
        EventError: a node's `seq` is not dense from 0 on.
    """
    expected: dict[str, int] = {}
    for event in log:
        missing = expected.get(event.node, 0)
        if event.seq != missing:
            raise EventError(
                f"{where}: {event.node}: seq {event.seq}, {missing} expected: events are missing"
            )
        expected[event.node] = event.seq + 1
