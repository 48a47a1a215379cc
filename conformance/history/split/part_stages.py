"""Judges one part of a history, and finds what other parts need to know of it."""

import pickle
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mqproof.conformance.history import linearizations
from mqproof.conformance.history.certificates import CERTIFIED, evidence
from mqproof.conformance.history.lines import Delivered, Message
from mqproof.conformance.history.parallel import Timed
from mqproof.conformance.history.record import OK, Elsewhere, Read, Record, Sent, Span, is_own
from mqproof.conformance.history.rules import OF_KEY, Key
from mqproof.conformance.history.split.splitter import home_of, of_part, part_file, part_of, read_part


class Work(NamedTuple):
    """What all processes know: the facts of the whole history, and where its parts are."""

    whole: Record
    queues: dict[str, int]
    """The part of each queue, and of the topics of sends without a queue."""
    folder: Path
    parts: int
    certified: bool
    """Whether the evidence of the findings is written."""
    ordered: bool
    """Whether the orders of the queues are written."""


@dataclass(slots=True)
class Foreign:
    """What a part by queue needs of other parts."""

    sends: dict[int, list[Sent]] = field(default_factory=dict)
    """The sends of other parts whose messages were read in this one, by their start."""
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)


OffsetIds = tuple[list[tuple[str, str, int, str, int, int]], list[tuple[str, str, int, int]]]
"""The offset ids of sends (with queue, offset, status, start and end) and of reads (queue, offset, index)."""


def judge_messages(work: Work, part: int) -> tuple[Timed, dict[int, bytes]]:
    """Judge a part by message; return its findings, and what each part by queue needs, pickled."""
    file = part_file(work.folder, Key.MESSAGE, part)
    builder = read_part(work.whole, file, of_part(part, work.parts))
    file.unlink()
    found = judge_part(work, Key.MESSAGE, part, builder.record)
    foreign = _foreign(builder.record, builder.batches, work.queues)
    return found, {number: pickle.dumps(each) for number, each in foreign.items()}


def judge_queues(work: Work, part: int) -> tuple[Timed, dict[int, bytes], list[linearizations.Row]]:
    """Judge a part by queue; return its findings, its offset ids by part, and the rows of its orders."""
    file = part_file(work.folder, Key.QUEUE, part)
    record = read_part(work.whole, file).record
    file.unlink()
    _add_foreign(record, foreign_file(work.folder, part))
    found = judge_part(work, Key.QUEUE, part, record)
    rows = []
    if work.ordered:
        with orders_file(work.folder, part).open("wb") as orders:
            for order in linearizations.orders(record):
                orders.write(linearizations.written(order))
                rows.append(linearizations.row(order))
    ids = _offset_ids(record, work.parts)
    return found, {number: pickle.dumps(each) for number, each in ids.items()}, rows


def judge_offset_ids(work: Work, part: int) -> Timed:
    """Judge the places that were named by the offset ids of one part."""
    sent: list[tuple[str, str, int, str, int, int]] = []
    read: list[tuple[str, str, int, int]] = []
    for one, two in _pickled(part_file(work.folder, Key.OFFSET_ID, part)):
        sent += one
        read += two
    record = Record(setup=work.whole.setup, faults=work.whole.faults, last_time=work.whole.last_time)
    for id_, queue, offset, status, start, end in sorted(sent, key=lambda each: each[5]):
        span = Span("", start, end, 0, 0, OK, "")
        record.sends.append(Sent(Message(""), "", span, status, queue, offset, offset_id=id_))
    for id_, queue, offset, at in sorted(read, key=lambda each: each[3]):
        message = Delivered("", offset, offset_id=id_)
        sight = Read("poll", "", queue, "", Span("", at, at, 0, 0, OK, ""), (message,), at), message
        record.sights.append(sight)
        record.places[queue].setdefault(offset, sight)
    return judge_part(work, Key.OFFSET_ID, part, record)


def judge_part(work: Work, key: Key, part: int, record: Record) -> Timed:
    """Apply the rules of a key, and write the evidence of their findings."""
    found: Timed = {}
    for rule, check in OF_KEY[key].items():
        began = time.perf_counter()
        found[rule] = finding, _ = check(record), time.perf_counter() - began
        if work.certified and rule in CERTIFIED:
            proof = msgspec.json.encode(evidence(record, rule, finding))[1:-1]
            if proof:
                evidence_file(work.folder, rule, key, part).write_bytes(proof)
    return found


def evidence_file(folder: Path, rule: str, key: Key, part: int) -> Path:
    """Return the file with the elements of a certificate that a part contributes; it may not exist."""
    return folder / f"evidence-{rule}-{key.value}-{part}"


def orders_file(folder: Path, part: int) -> Path:
    return folder / f"orders-{part}"


def foreign_file(folder: Path, part: int) -> Path:
    return folder / f"foreign-{part}"


def _foreign(record: Record, batches: dict[int, list[Sent]], queues: dict[str, int]) -> dict[int, Foreign]:
    """Return what parts by queue need of each other's messages, for the messages of this part."""
    sends, reads = _spread(record, queues)
    draining = {step.value.group for step in record.drains}
    found: dict[int, Foreign] = defaultdict(Foreign)
    for id_, sent_in in sends.items():
        for part in reads[id_]:
            found[part].sends |= {s.span.start: batches[s.span.start] for p, s in sent_in if p != part}
        for part in {part for part, _ in sent_in}:
            others = [read for at, mine in reads[id_].items() if at != part for read in mine]
            if others:
                groups: dict[str, int] = {}
                for read in sorted(others, key=_index):
                    if read.group in draining:
                        groups.setdefault(read.group, read.at)
                found[part].elsewhere[id_] = Elsewhere(min(map(_index, others)), groups)
    return found


def _spread(
    record: Record, queues: dict[str, int]
) -> tuple[dict[str, list[tuple[int, Sent]]], dict[str, dict[int, list[Read]]]]:
    """Return the sends and reads of the messages that are in several parts by queue, with these parts."""
    homes: dict[str, int] = {}
    several: set[str] = set()
    for sent in record.sends:
        part = queues[home_of(sent)]
        if homes.setdefault(sent.message.id, part) != part:
            several.add(sent.message.id)
    for read in record.reads:
        part = queues[read.queue]
        several.update([m.id for m in read.messages if homes.setdefault(m.id, part) != part])
    sends: dict[str, list[tuple[int, Sent]]] = defaultdict(list)
    reads: dict[str, dict[int, list[Read]]] = defaultdict(lambda: defaultdict(list))
    for sent in record.sends if several else ():
        if sent.message.id in several:
            sends[sent.message.id].append((queues[home_of(sent)], sent))
    for read in record.reads if several else ():
        for message in read.messages:
            if message.id in several:
                reads[message.id][queues[read.queue]].append(read)
    return sends, reads


def _index(read: Read) -> int:
    return read.at


def _add_foreign(record: Record, file: Path) -> None:
    """Add to a part by queue what it needs of other parts."""
    batches: dict[int, list[Sent]] = {}
    for each in _pickled(file):
        batches |= each.sends
        record.elsewhere |= each.elsewhere
    if batches:
        record.foreign = set(batches)
        record.sends += [sent for batch in batches.values() for sent in batch]
        record.sends.sort(key=lambda sent: (sent.span.last, sent.span.start))


def _offset_ids(record: Record, parts: int) -> dict[int, OffsetIds]:
    """Return the offset ids of the places in a part by queue, by the parts that judge them."""
    found: dict[int, OffsetIds] = defaultdict(lambda: ([], []))
    for sent in record.placed:
        if id_ := sent.offset_id:
            span = sent.span
            place = id_, sent.queue, sent.offset, sent.status, span.start, span.end
            found[part_of(id_, parts)][0].append(place)
    for read, message in record.sights:
        if (id_ := message.offset_id) and not read.node and is_own(read.queue):
            found[part_of(id_, parts)][1].append((id_, read.queue, message.offset, read.at))
    return found


def _pickled(file: Path) -> Iterator[Any]:
    """Yield the objects of a file of this history's folder, one after the other, and remove it."""
    if not file.exists():
        return
    with file.open("rb") as pickles:
        while pickles.peek(1):
            yield pickle.load(pickles)  # written by this process and its children
    file.unlink()
