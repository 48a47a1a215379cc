"""The steps of one client as the lines of a history.

The suite's checkers and the rules for many clients judge them.
"""

from collections.abc import Iterator
from typing import Final

from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import (
    NEMESIS,
    BoundsValue,
    CommitValue,
    Delivered,
    FaultValue,
    Group,
    Line,
    Message,
    PollValue,
    QueryValue,
    SendValue,
    SetupValue,
    Type,
)
from mqproof.conformance.suites.flush.steps import (
    Bounds,
    Commit,
    Down,
    History,
    Operation,
    Pull,
    Query,
    Restart,
    Send,
    checksum,
)
from mqproof.conformance.suites.flush.target import Outcome, PulledMessage, Setup

EXAMINER = "examiner"
"""The group that reads queues without consuming them."""
_STEP_NS: Final = 1_000_000
_OUTCOMES = {Outcome.OK: Type.OK, Outcome.FAILED: Type.FAIL, Outcome.INDETERMINATE: Type.INFO}


def as_lines(history: History) -> Iterator[Line]:
    """Yield one line for the beginning and one for the end of each step; nothing happens in between.

    Time is logical, one millisecond per step. The step at which syncs begin to fail has no line, since no
    rule uses it.
    """
    setup = history.setup
    groups = {setup.group: Group(topics=(setup.topic,))}
    yield lines.Setup(
        0, 0, NEMESIS, Type.INFO, SetupValue(seed=setup.seed, flush_mode=setup.flush_mode, groups=groups)
    )
    index = 1
    for step, operation in enumerate(history.operations, start=2):
        for line in _lines(setup, operation, index, step * _STEP_NS):
            yield line
            index += 1


def step_at(time: int) -> int:
    """Return the step number as `steps.numbered` counts: opening the broker is step 1."""
    return time // _STEP_NS


def _lines(setup: Setup, operation: Operation, index: int, now: int) -> Iterator[Line]:
    process, queue = "client", _queue(setup.topic, getattr(operation, "queue_id", 0))
    match operation:
        case Send(_, msg_id, body, answer):
            sent = SendValue(setup.topic, (Message(msg_id, f"{checksum(body):08x}"),), queue=queue)
            yield lines.Send(index, now, process, Type.INVOKE, sent)
            response = SendValue(status=answer.status, queue=queue, offset=answer.queue_offset)
            how = _OUTCOMES[answer.outcome]
            yield lines.Send(index + 1, now, process, how, response if how is Type.OK else SendValue())
        case Pull(_, offset, _, pulled, peek):
            group = EXAMINER if peek else setup.group
            yield lines.Poll(index, now, process, Type.INVOKE, PollValue(group, queue, offset, seek=peek))
            found = tuple(_delivered(message, queue) for message in pulled.messages)
            answer_ = PollValue(
                messages=found, next=pulled.next_offset, min=pulled.min_offset, max=pulled.max_offset
            )
            yield lines.Poll(index + 1, now, process, Type.OK, answer_)
        case Commit(_, offset, accepted, reset):
            value = CommitValue(setup.group, queue, offset, reset=reset)
            yield lines.Commit(index, now, process, Type.INVOKE, value)
            yield lines.Commit(index + 1, now, process, Type.OK if accepted else Type.FAIL, value)
        case Query(_, offset):
            yield lines.Query(index, now, process, Type.INVOKE, QueryValue(setup.group, queue))
            yield lines.Query(index + 1, now, process, Type.OK, QueryValue(offset=offset))
        case Bounds(_, low, high):
            yield lines.Bounds(index, now, process, Type.INVOKE, BoundsValue(queue))
            yield lines.Bounds(index + 1, now, process, Type.OK, BoundsValue(min=low, max=high))
        case Down(how_):
            yield lines.Fault(index, now, NEMESIS, Type.INFO, FaultValue(how_.value, "b"))
        case Restart(failure):
            yield lines.Fault(index, now, NEMESIS, Type.INFO, FaultValue("start", "b", failure))


def _delivered(message: PulledMessage, queue: str) -> Delivered:
    named = _queue(message.topic, message.queue_id)
    return Delivered(
        message.msg_id,
        message.queue_offset,
        f"{checksum(message.body):08x}",
        queue="" if named == queue else named,
    )


def _queue(topic: str, queue_id: int) -> str:
    return f"{topic}/b/{queue_id}"
