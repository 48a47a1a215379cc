"""Judges a history in columns: regular queues by the sieve, everything else by the ordinary rules.

A queue is cleared if it is regular, no line outside of the columns names it, and its ids are nowhere else.
Then no rule compares its operations with others, and the findings on it and on the remaining history are
merged.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history import lines
from mqproof.conformance.history.columns.conversion import chosen_lines, rest_lines
from mqproof.conformance.history.columns.encoding import Array
from mqproof.conformance.history.columns.identities import repeated
from mqproof.conformance.history.columns.line_check import last_time
from mqproof.conformance.history.columns.sieve import Irregular, cleared
from mqproof.conformance.history.columns.tables import Columns, Queue
from mqproof.conformance.history.lines import Line, topic_of
from mqproof.conformance.history.pairing import Builder, pair
from mqproof.conformance.history.parallel import Timed, findings, mapped
from mqproof.conformance.history.record import OK, Record, Span
from mqproof.conformance.history.rules.service import calm
from mqproof.conformance.history.split.judged_parts import merge

_LINES = -1
"""Stands for the lines of all queues."""


class Found(NamedTuple):
    """The findings on a history in columns."""

    whole: Record
    """The remaining history, with what is known of the whole one."""
    findings: Timed
    cleared: dict[str, int]
    """The regular queues, and their numbers of operations."""
    others: dict[str, str]
    """The queues that the ordinary rules judged, and why."""


class _Sifted(NamedTuple):
    """What one queue contributes, whether or not it is cleared."""

    reason: str
    """Why it is not regular; empty if it is."""
    findings: dict[str, Finding]
    """If it is regular, those of all rules that examine queues."""
    operations: int
    asked: int
    spans: list[Span]
    """Its first send, and the first one after each fault."""
    last_read: tuple[int, int]
    """Index and time of the last read."""
    messages: int
    offset_ids: int
    """The number of messages, and of those with an offset id; -1 if the queue is not regular."""


class _Work(NamedTuple):
    """What all processes share."""

    columns: Columns
    left: list[Line]
    rest: Record
    """The lines that are not in columns."""
    named: set[str]
    """The queues that these name."""


_work: _Work | None = None
"""The history whose queues the forked processes examine."""


def judge_columns(folder: Path, processes: int) -> Found:
    """Judge a folder of columns.

    Raises:
        HistoryError: a column or a line is not valid.
        KilledProcessError: a process was killed, as it is if there is no memory left.
        OSError: a file cannot be read.
    """
    global _work  # a fork inherits it; an argument would be sent
    columns = Columns(folder)
    left = rest_lines(columns)
    rest = _record(left)
    _work = _Work(columns, left, rest, _named(rest))
    numbers = range(len(columns.queues))
    try:
        with mapped(min(processes, 1 + len(numbers))) as map_:
            (last, *sifted) = map_(_examine, [_LINES, *numbers])
    finally:
        _work = None
    reasons = _reasons(columns, left, sifted, processes)
    whole = _record(chosen_lines(columns, left, (n for n in numbers if n in reasons)))
    whole.last_time = last
    names = columns.queues
    clear = {names[n]: each for n, each in enumerate(sifted) if n not in reasons}
    _add_whole(whole, clear)
    found = findings(whole, processes)
    for rule, (finding, seconds) in list(found.items()):
        parts = [each.findings[rule] for each in clear.values() if rule in each.findings]
        found[rule] = merge([finding, *parts]), seconds
    sizes = {queue: each.operations for queue, each in clear.items()}
    return Found(whole, found, sizes, {names[n]: why for n, why in reasons.items()})


def _record(history: Iterable[Line]) -> Record:
    """Sort some lines of the history into a Record."""
    builder = Builder(Record())
    pair(history, builder, is_whole=False)
    return builder.record


def _named(rest: Record) -> set[str]:
    """Return the queues that the rules compare with operations outside of the columns."""
    steps = (*rest.acks, *rest.commits, *rest.queries)
    named = {read.queue for read in rest.reads} | {step.value.queue for step in steps}
    return named | {sent.queue for sent in rest.stored}


def _examine(number: int) -> Any:
    """Examine a queue, or return the time of the last line after all lines were examined together."""
    assert _work is not None, "the process was not forked by `judge_columns`"
    if number == _LINES:
        return last_time(_work.columns, _work.left)
    columns, rest = _work.columns, _work.rest
    queue = columns.queue(number)
    messages = offset_ids = -1
    try:
        if queue.name in _work.named:
            raise Irregular("operations that columns do not have name it")
        found, messages, offset_ids = cleared(columns, queue, rest)
        reason = ""
    except Irregular as irregular:
        reason, found = str(irregular), {}
    asked = queue.sends.rows + int(queue.is_poll.sum())
    spans, last_read = _spans(queue, rest), _last_read(queue)
    return _Sifted(reason, found, queue.operations, asked, spans, last_read, messages, offset_ids)


def _spans(queue: Queue, rest: Record) -> list[Span]:
    """Return the sends that the rules about requests examine: as `split.splitter` keeps them."""
    sends = queue.sends
    if not sends.rows:
        return []
    wanted = {0}
    for window in calm(rest)[1:]:
        row = int(np.searchsorted(sends.ended, window.since))
        wanted |= {row} if row < sends.rows else set()
    topic, found = topic_of(queue.name), list[Span]()
    for row in wanted:
        start, end = int(sends.start[row]), int(sends.end[row])
        began, ended_at = int(sends.began[row]), int(sends.ended[row])
        found.append(Span("", start, end, began, ended_at, OK, "", "send", topic, end))
    return found


def _last_read(queue: Queue) -> tuple[int, int]:
    reads = queue.reads
    if not reads.rows:
        return -1, 0
    last = int(queue.read_at.argmax())
    return int(queue.read_at[last]), int(reads.began[last])


def _reasons(columns: Columns, left: list[Line], sifted: list[_Sifted], processes: int) -> dict[int, str]:
    """Return the queues that are not cleared, and why: the last reason is an id that is elsewhere, too."""
    reasons = {number: each.reason for number, each in enumerate(sifted) if each.reason}
    ids, offset_ids = _rest_ids(left)
    for what, place, others, expected in (
        ("an id", ("messages", "id"), ids, [each.messages for each in sifted]),
        ("an offset id", ("offset_ids", "text"), offset_ids, [each.offset_ids for each in sifted]),
    ):
        for number in sorted(repeated(columns, *place, expected, others, processes)):
            reasons.setdefault(number, f"{what} occurs elsewhere, too")
    return reasons


def _rest_ids(left: list[Line]) -> tuple[Array, Array]:
    """Return the ids and offset ids of the lines that are not in columns."""
    ids, offset_ids = set[str](), set[str]()
    for line in left:
        value: Any = line.value
        if isinstance(line, lines.Recall):
            ids.add(value.id)
        if isinstance(line, lines.Send):
            offset_ids.add(value.offset_id)
        for message in getattr(value, "messages", ()):
            ids.add(message.id)
            offset_ids.add(getattr(message, "offset_id", ""))
    return _texts(ids), _texts(offset_ids - {""})


def _texts(texts: set[str]) -> Array:
    return np.array([text.encode() for text in texts], "S")


def _add_whole(whole: Record, clear: dict[str, _Sifted]) -> None:
    """Add what the rules on the remaining history need to know of the cleared queues."""
    whole.operations += sum(each.operations for each in clear.values())
    whole.asked = whole.asked + sum(each.asked for each in clear.values())
    spans = [*whole.spans, *(span for each in clear.values() for span in each.spans)]
    whole.spans = sorted(spans, key=lambda span: span.last)
    last: dict[str, tuple[int, int]] = {}
    for read in whole.reads:
        last[topic_of(read.queue)] = read.at, read.span.began
    for queue, each in clear.items():
        topic = topic_of(queue)
        last[topic] = max(last.get(topic, (-1, 0)), each.last_read)
    whole.last_reads = {topic: began for topic, (at, began) in last.items() if at >= 0}
