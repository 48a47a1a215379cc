"""Generates a history in columns, for `mqproof bench history --columns`.

It is a healthy cluster without faults. Rounds follow each other; in a round, four producers send a message
each to each queue, and three groups receive them: one polls and commits, one has a listener that receives two
messages at a time, and one polls with a tag. The producers' operations overlap. A queue has 9 operations in a
round.
"""

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from mqproof.conformance.history.columns.encoding import Array
from mqproof.conformance.history.columns.tables import CONSUME, POLL, Header
from mqproof.conformance.history.columns.writer import add_block, write_header
from mqproof.conformance.history.lines import Group, Setup, SetupValue, Type, encode
from mqproof.conformance.history.parallel import mapped

OPERATIONS: Final = 9
"""The operations of a queue in a round."""
_LINES: Final = 2 * OPERATIONS
_STEP_NS: Final = 1000
_BLOCK_ROUNDS: Final = 1 << 14
_PRODUCERS: Final = ("p0", "p1", "p2", "p3")
_NEMESIS: Final = "nemesis"
SETUP: Final = SetupValue(
    name="generated",
    groups={"poll": Group(topics=("T",)), "listen": Group(topics=("T",)), "tag": Group(("T",), tags=("A",))},
    visible_within_ms=1000,
    lag_max_ms=60_000,
)


def write(folder: Path, operations: int, queues: int, processes: int = 1) -> int:
    """Write a history of about this many operations; return how many there are."""
    rounds = max(1, operations // (OPERATIONS * queues))
    folder.mkdir(parents=True)
    names: list[str | int] = [_NEMESIS, *_PRODUCERS, *SETUP.groups]
    names += [f"{group}-{queue}" for queue in range(queues) for group in SETUP.groups]
    with mapped(min(processes, queues)) as map_:
        for _ in map_(partial(_write_queue, folder, rounds, queues), range(queues)):
            pass
    lines = 1 + rounds * queues * _LINES
    write_header(folder, Header(names=names, queues=[f"T/b/{queue}" for queue in range(queues)], lines=lines))
    (folder / "rest.jsonl").write_bytes(encode(Setup(0, 0, _NEMESIS, Type.INFO, SETUP)))
    return rounds * queues * OPERATIONS


def _write_queue(folder: Path, rounds: int, queues: int, queue: int) -> None:
    for begin in range(0, rounds, _BLOCK_ROUNDS):
        numbers = np.arange(begin, min(rounds, begin + _BLOCK_ROUNDS))
        _write_rounds(folder, queue, numbers, 1 + (numbers * queues + queue) * _LINES)


def _write_rounds(folder: Path, queue: int, numbers: Array, first: Array) -> None:
    """Write some rounds of a queue, whose first lines are given."""
    rounds, size = len(numbers), 4 * len(numbers)
    groups = range(1 + len(_PRODUCERS), 1 + len(_PRODUCERS) + len(SETUP.groups))
    members = [groups[-1] + 1 + queue * len(SETUP.groups) + place for place in range(len(SETUP.groups))]
    offsets = _at(numbers * 4, 0, 1, 2, 3)
    # The second producer is answered first, and so on: the order of the ends is that of the offsets.
    sends = _spans(_at(first, 1, 0, 3, 2), _at(first, 4, 5, 6, 7), np.tile([2, 1, 4, 3], rounds))
    add_block(
        folder,
        queue,
        "sends",
        {**sends, "offset": offsets, "count": np.ones(size), "message": offsets, "offset_id": offsets},
    )
    texts = {
        "id": _texts(queue, offsets, b"m"),
        "body": _texts(0, offsets * 7919, b"")[:, None].view("S8")[:, 1].copy(),
        "tag": np.tile(np.array([b"A", b"B"]), 2 * rounds),
        "key": np.zeros(size, "S1"),
    }
    add_block(folder, queue, "messages", texts)
    add_block(folder, queue, "offset_ids", {"text": _texts(queue, offsets, b"o")})
    stored = sends["ended"]
    contents = {"message": offsets, "offset": offsets, "stored": stored, "born": stored - 1}
    add_block(folder, queue, "contents", {**contents, "offset_id": offsets})
    kind = np.tile([POLL, CONSUME, CONSUME, POLL], rounds)
    reader = np.tile([0, 1, 1, 2], rounds)
    offset = np.where(kind == POLL, np.repeat(numbers * 4, 4), -1)
    next_ = np.where(kind == POLL, offset + 4, -1)
    reads = _spans(_at(first, 8, 12, 14, 16), _at(first, 9, 13, 15, 17), np.array(members)[reader])
    none = np.full(size, -1)
    add_block(
        folder,
        queue,
        "reads",
        {
            **reads,
            "kind": kind,
            "group": np.array(groups)[reader],
            "client": none,
            "node": none,
            "offset": offset,
            "next": next_,
            "max": next_,
            "count": np.tile([4, 2, 2, 2], rounds),
        },
    )
    add_block(folder, queue, "delivered", {"content": _at(numbers * 4, 0, 1, 2, 3, 0, 1, 2, 3, 0, 2)})
    commits = _spans(_at(first, 10), _at(first, 11), np.full(rounds, members[0]))
    group = np.full(rounds, groups[0])
    add_block(
        folder, queue, "commits",
        {**commits, "group": group, "client": none[:rounds], "offset": (numbers + 1) * 4},
    )  # fmt: skip


def _spans(start: Array, end: Array, process: Array) -> dict[str, Array]:
    times = {"ended": end * _STEP_NS, "began": start * _STEP_NS}
    return {"end": end, "start": start, **times, "process": process}


def _at(first: Array, *places: int) -> Array:
    """Return the lines at these places of each round."""
    found: Array = first[:, None] + np.array(places)
    return found.ravel()


_DIGITS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


def _texts(queue: int, numbers: Array, kind: bytes) -> Array:
    """Return texts of 16 bytes, for each number of a queue another one."""
    shifts = np.arange(44, -4, -4)
    digits = _DIGITS[(numbers[:, None] >> shifts) & 15]
    head = np.frombuffer(kind + f"{queue:0{4 - len(kind)}x}".encode(), np.uint8)
    found: Array = np.ascontiguousarray(np.hstack([np.tile(head, (len(numbers), 1)), digits])).view("S16")
    return found.ravel()
