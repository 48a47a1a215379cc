"""Judges a history in columns: regular queues by the sieve, everything else by the ordinary rules.

A queue is cleared if it is regular, no line outside of the columns names it, and its ids are nowhere else.
Then no rule compares its operations with others, and the findings on it and on the remaining history are
merged.
"""

import mmap
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history import lines
from mqproof.conformance.history.columns.conversion import chosen_lines, rest_lines
from mqproof.conformance.history.columns.sieve import Irregular, cleared
from mqproof.conformance.history.columns.tables import Array, Columns, Queue
from mqproof.conformance.history.lines import HistoryError, Line, Type, topic_of
from mqproof.conformance.history.pairing import Builder, pair
from mqproof.conformance.history.parallel import Timed, findings, forks
from mqproof.conformance.history.record import OK, Record, Span
from mqproof.conformance.history.rules.service import calm
from mqproof.conformance.history.split.judged_parts import merge

_BLOCK_LINES: Final = 1 << 20
_BEGIN, _END, _ALONE = 1, 2, 3
_MIXED: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""The shifts and factors of SplitMix64."""


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
    ids: Array
    offset_ids: Array
    """Fingerprints; those of a regular queue are as many as it has messages."""


class _Work(NamedTuple):
    """What all processes share."""

    columns: Columns
    rest: Record
    named: set[str]
    """The queues that lines outside of the columns name."""
    marks: Array
    """For each line of the history, its role in the operation that has it: 0 if none has."""


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
    rest = _record(left, columns)
    marks = np.frombuffer(mmap.mmap(-1, max(1, columns.lines.rows)), np.uint8)[: columns.lines.rows]
    _mark_rest(columns, left, marks)
    _work = _Work(columns, rest, _named(rest), marks)
    numbers = range(len(columns.queues))
    try:
        is_one = processes < 2 or len(numbers) < 2
        with nullcontext() if is_one else forks(min(processes, len(numbers))) as pool:
            map_: Callable[..., Iterable[Any]] = map if pool is None else pool.map
            sifted: list[_Sifted] = list(map_(_sift, numbers))
    finally:
        _work = None
    _check_lines(columns, len(left) + 2 * sum(each.operations for each in sifted), marks)
    reasons = _reasons(left, sifted)
    whole = _record(chosen_lines(columns, left, (n for n in numbers if n in reasons)), columns)
    names = columns.queues
    clear = {names[n]: each for n, each in enumerate(sifted) if n not in reasons}
    _add_whole(whole, clear)
    found = findings(whole, processes)
    for rule, (finding, seconds) in list(found.items()):
        parts = [each.findings[rule] for each in clear.values() if rule in each.findings]
        found[rule] = merge([finding, *parts]), seconds
    sizes = {queue: each.operations for queue, each in clear.items()}
    return Found(whole, found, sizes, {names[n]: why for n, why in reasons.items()})


def _record(history: Iterable[Line], columns: Columns) -> Record:
    """Sort some lines of the history into a Record."""
    builder = Builder(Record())
    pair(history, builder, is_whole=False)
    record, times = builder.record, columns.lines.time
    record.last_time = int(times[-1]) if len(times) else 0
    return record


def _named(rest: Record) -> set[str]:
    """Return the queues that the rules compare with operations outside of the columns."""
    steps = (*rest.acks, *rest.commits, *rest.queries)
    named = {read.queue for read in rest.reads} | {step.value.queue for step in steps}
    return named | {sent.queue for sent in rest.stored}


def _sift(number: int) -> _Sifted:
    assert _work is not None, "the process was not forked by `judge_columns`"
    columns, rest = _work.columns, _work.rest
    queue = columns.queue(number)
    for table in (queue.sends, queue.reads, queue.commits):
        _work.marks[table.start], _work.marks[table.end] = _BEGIN, _END
    try:
        if queue.name in _work.named:
            raise Irregular("operations that columns do not have name it")
        found, named = cleared(columns, queue, rest)
        reason, ids, offset_ids = "", fingerprints(queue.messages.id), fingerprints(named)
    except Irregular as irregular:
        reason, found = str(irregular), {}
        ids = _all_of(queue.messages.id, queue.contents.id)
        offset_ids = _all_of(_filled(queue.sends.offset_id), _filled(queue.contents.offset_id))
    polls = int(queue.is_poll.sum())
    return _Sifted(
        reason,
        found,
        queue.operations,
        queue.sends.rows + polls,
        _spans(columns, queue, rest),
        _last_read(columns, queue),
        ids,
        offset_ids,
    )


def fingerprints(texts: Array) -> Array:
    """Return a number for each text: equal texts have equal numbers, whatever the width of the column."""
    width = -(-max(1, texts.dtype.itemsize) // 8) * 8
    words = np.ascontiguousarray(texts.astype(f"S{width}")).view(np.uint64).reshape(len(texts), width // 8)
    found = np.zeros(len(texts), np.uint64)
    for place in reversed(range(width // 8)):  # 0 stays 0, so that words of NUL at the end do not count
        found ^= words[:, place]
        for shift, factor in _MIXED:
            found ^= found >> np.uint64(shift)
            found *= np.uint64(factor)
        found ^= found >> np.uint64(31)
    return found


def _all_of(*columns: Array) -> Array:
    """Return the fingerprints of the texts, each once."""
    found: Array = np.unique(np.concatenate([fingerprints(column) for column in columns]))
    return found


def _filled(texts: Array) -> Array:
    filled: Array = texts[texts != b""]
    return filled


def _spans(columns: Columns, queue: Queue, rest: Record) -> list[Span]:
    """Return the sends that the rules about requests examine: as `split.splitter` keeps them."""
    sends, times = queue.sends, columns.lines.time
    if not sends.rows:
        return []
    ended = times[sends.end]
    wanted = {int(np.argmin(sends.end))}
    for window in calm(rest)[1:]:
        later = np.flatnonzero(ended >= window.since)
        if len(later):
            wanted.add(int(later[np.argmin(sends.end[later])]))
    topic, found = topic_of(queue.name), list[Span]()
    for row in wanted:
        start, end = int(sends.start[row]), int(sends.end[row])
        began, ended_at = int(times[start]), int(times[end])
        found.append(Span("", start, end, began, ended_at, OK, "", "send", topic, end))
    return found


def _last_read(columns: Columns, queue: Queue) -> tuple[int, int]:
    reads = queue.reads
    if not reads.rows:
        return -1, 0
    at = queue.read_at
    last = int(at.argmax())
    return int(at[last]), int(columns.lines.time[reads.start[last]])


def _mark_rest(columns: Columns, left: list[Line], marks: Array) -> None:
    times, processes = columns.lines.time, columns.lines.process
    for line in left:
        index = line.index
        if not 0 <= index < len(marks):
            raise HistoryError(f"{columns.rest}: index {index}, expected 0 to {len(marks) - 1}")
        if (line.time, line.process) != (times[index], columns.names[processes[index]]):
            raise HistoryError(f"{columns.rest}: line {index} has another time or process than the columns")
        alone = isinstance(line, lines.Setup | lines.Fault)
        marks[index] = _ALONE if alone else _BEGIN if line.type is Type.INVOKE else _END


def _check_lines(columns: Columns, count: int, marks: Array) -> None:
    """Raise HistoryError unless each line belongs to one operation, and each process has one at a time."""
    if count != len(marks) or not marks.all():
        different = int((marks != 0).sum())
        raise HistoryError(
            f"{columns.folder}: the operations have {count} lines and {different} different indexes, expected"
            f" {len(marks)}, the rows of lines/time.npy"
        )
    names = len(columns.names)
    processes = columns.lines.process
    state = np.full(names, _END, np.uint8)
    latest = 0
    for begin in range(0, len(marks), _BLOCK_LINES):
        block = slice(begin, begin + _BLOCK_LINES)
        times = columns.lines.time[block]
        if times[0] < latest or (np.diff(times) < 0).any():
            raise HistoryError(f"{columns.folder / 'lines' / 'time.npy'}: time goes back")
        latest = times[-1]
        mine = np.flatnonzero(marks[block] != _ALONE)
        process = processes[block][mine].astype(np.uint16 if names <= 1 << 16 else np.int32)
        order = np.argsort(process, kind="stable")
        process, role = process[order], marks[block][mine][order]
        is_first = np.append(True, process[1:] != process[:-1])[: len(process)]
        before = np.where(is_first, state[process], np.roll(role, 1))
        if (before == role).any():
            name = columns.names[process[int((before == role).argmax())]]
            raise HistoryError(f"{columns.folder}: {name} has several operations at a time")
        is_last = np.append(is_first[1:], True)[: len(process)]
        state[process[is_last]] = role[is_last]


def _reasons(left: list[Line], sifted: list[_Sifted]) -> dict[int, str]:
    """Return the queues that are not cleared, and why: the last reason is an id that is elsewhere, too."""
    reasons = {number: each.reason for number, each in enumerate(sifted) if each.reason}
    ids, offset_ids = _rest_ids(left)
    for what, mine in (
        ("an id", [_all_of(ids), *(each.ids for each in sifted)]),
        ("an offset id", [_all_of(offset_ids), *(each.offset_ids for each in sifted)]),
    ):
        every = np.concatenate(mine)
        every.sort()
        twice = np.unique(every[1:][every[1:] == every[:-1]])
        for number, found in enumerate(mine[1:]) if len(twice) else ():
            if number not in reasons and np.isin(found, twice).any():
                reasons[number] = f"{what} occurs elsewhere, too"
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
