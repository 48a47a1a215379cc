"""Records a history line by line as the operations happen."""

from collections.abc import Callable
from typing import Any, Final

from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import (
    AckValue,
    AssignValue,
    BoundsValue,
    CommitValue,
    ConsumeValue,
    DrainValue,
    FaultValue,
    Line,
    PollValue,
    PopValue,
    QueryValue,
    SendValue,
    SetupValue,
    Type,
)

_KINDS: Final[dict[type, type]] = {
    SendValue: lines.Send, PollValue: lines.Poll, ConsumeValue: lines.Consume, PopValue: lines.Pop,
    AckValue: lines.Ack, CommitValue: lines.Commit, QueryValue: lines.Query, BoundsValue: lines.Bounds,
    AssignValue: lines.Assign, lines.RecallValue: lines.Recall, lines.TopicValue: lines.DeleteTopic,
    DrainValue: lines.Drain,
}  # fmt: skip


class Historian:
    """Records the requests and responses of all clients of a run. `now` returns nanoseconds, by one clock."""

    def __init__(self, now: Callable[[], int], setup: SetupValue) -> None:
        self.now = now
        self.lines: list[Line] = [lines.Setup(0, now(), lines.NEMESIS, Type.INFO, setup)]

    def begin(self, process: str, value: Any) -> None:
        kind = _KINDS[type(value)]
        self.lines.append(kind(len(self.lines), self.now(), process, Type.INVOKE, value))

    def end(self, process: str, value: Any, how: Type = Type.OK, error: str = "") -> None:
        kind = _KINDS[type(value)]
        self.lines.append(kind(len(self.lines), self.now(), process, how, value, error))

    def did(
        self, process: str, request: Any, response: Any = None, how: Type = Type.OK, error: str = ""
    ) -> None:
        """Record a whole operation without lines in between."""
        self.begin(process, request)
        self.end(process, request if response is None else response, how, error)

    def fault(self, kind: str, node: str = "b", failure: str = "") -> None:
        value = FaultValue(kind, node, failure)
        self.lines.append(lines.Fault(len(self.lines), self.now(), lines.NEMESIS, Type.INFO, value))
