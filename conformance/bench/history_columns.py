"""Generates a history in columns, for `mqproof bench history --columns`.

It is a healthy cluster without faults. Rounds follow each other; in a round, four producers send a message
each to each queue, and three groups receive them: one polls and commits, one has a listener that receives two
messages at a time, and one polls with a tag. The producers' operations overlap. A queue has 9 operations in a
round.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from mqproof.conformance.history.columns.tables import CONSUME, LINES, POLL, TABLES, Array, Header
from mqproof.conformance.history.lines import Group, Setup, SetupValue, Type, encode

OPERATIONS: Final = 9
"""The operations of a queue in a round."""
_LINES: Final = 2 * OPERATIONS
_STEP_NS: Final = 1000
_BLOCK_LINES: Final = 1 << 20
_PRODUCERS: Final = ("p0", "p1", "p2", "p3")
_NEMESIS: Final = "nemesis"
SETUP: Final = SetupValue(
    name="generated",
    groups={"poll": Group(topics=("T",)), "listen": Group(topics=("T",)), "tag": Group(("T",), tags=("A",))},
    visible_within_ms=1000,
    lag_max_ms=60_000,
)


def write(folder: Path, operations: int, queues: int) -> int:
    """Write a history of about this many operations; return how many there are."""
    rounds = max(1, operations // (OPERATIONS * queues))
    lines = 1 + rounds * queues * _LINES
    (folder / "lines").mkdir(parents=True)
    consumers = [f"{group}-{queue}" for queue in range(queues) for group in SETUP.groups]
    names = [_NEMESIS, *_PRODUCERS, *SETUP.groups, *consumers]
    time = _open(folder / "lines" / "time.npy", LINES["time"], lines)
    process = _open(folder / "lines" / "process.npy", LINES["process"], lines)
    for begin in range(0, lines, _BLOCK_LINES):
        numbers = np.arange(begin, min(lines, begin + _BLOCK_LINES))
        time[numbers[0] : numbers[-1] + 1] = numbers * _STEP_NS
    process[0] = 0
    process[1:].reshape(rounds, queues * _LINES)[:] = _round(names, queues)
    for queue in range(queues):
        _write_queue(folder / str(queue), queue, np.arange(rounds) * queues * _LINES + queue * _LINES + 1)
    header = Header(names=list(names), queues=[f"T/b/{queue}" for queue in range(queues)])
    (folder / "columns.json").write_bytes(msgspec.json.encode(header))
    (folder / "rest.jsonl").write_bytes(encode(Setup(0, 0, _NEMESIS, Type.INFO, SETUP)))
    return rounds * queues * OPERATIONS


def _round(names: list[str], queues: int) -> list[int]:
    """Return the processes of the lines of a round, as numbers of names."""
    found: list[int] = []
    for queue in range(queues):
        poller, listener, tagged = (names.index(f"{group}-{queue}") for group in SETUP.groups)
        found += [1, 2, 3, 4, 2, 1, 4, 3, *[poller] * 4, *[listener] * 4, *[tagged] * 2]
    return found


def _write_queue(folder: Path, queue: int, first: Array) -> None:
    """Write a queue whose rounds begin at these lines."""
    rounds = len(first)
    size = 4 * rounds
    groups = range(1 + len(_PRODUCERS), 1 + len(_PRODUCERS) + len(SETUP.groups))
    offsets = np.arange(size)
    # The second producer is answered first, and so on: the order of the ends is that of the offsets.
    start, end = _at(first, 1, 0, 3, 2), _at(first, 4, 5, 6, 7)
    ids, offset_ids = _texts(queue, offsets, b"m"), _texts(queue, offsets, b"o")
    tags = np.tile(np.array([b"A", b"B"]), 2 * rounds)
    texts = {"id": ids, "body": _texts(0, offsets * 7919, b"")[:, None].view("S8")[:, 1].copy(), "tag": tags}
    texts["key"] = np.zeros(size, "S1")
    _save(folder, "sends", start=start, end=end, offset=offsets, count=np.ones(size), offset_id=offset_ids)
    _save(folder, "messages", **texts)
    stored = end * _STEP_NS
    _save(folder, "contents", offset=offsets, **texts, born=stored - 1, stored=stored, offset_id=offset_ids)
    kind = np.tile([POLL, CONSUME, CONSUME, POLL], rounds)
    reads = {
        "kind": kind,
        "start": _at(first, 8, 12, 14, 16),
        "end": _at(first, 9, 13, 15, 17),
        "group": np.tile([groups[0], groups[1], groups[1], groups[2]], rounds),
        "client": np.full(size, -1),
        "node": np.full(size, -1),
        "offset": np.where(kind == POLL, np.repeat(np.arange(rounds) * 4, 4), -1),
        "count": np.tile([4, 2, 2, 2], rounds),
    }
    reads["next"] = reads["max"] = np.where(reads["offset"] >= 0, reads["offset"] + 4, -1)
    _save(folder, "reads", **reads)
    _save(folder, "delivered", content=_at(np.arange(rounds) * 4, 0, 1, 2, 3, 0, 1, 2, 3, 0, 2))
    group, client = np.full(rounds, groups[0]), np.full(rounds, -1)
    commits = {"start": _at(first, 10), "end": _at(first, 11), "group": group, "client": client}
    _save(folder, "commits", **commits, offset=np.arange(1, rounds + 1) * 4)


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


def _save(folder: Path, table: str, **columns: Any) -> None:
    (folder / table).mkdir(parents=True)
    for name, kind in TABLES[table].items():
        column = columns[name] if kind == "S" else columns[name].astype(kind)
        np.save(folder / table / f"{name}.npy", column, allow_pickle=False)


def _open(file: Path, kind: str, rows: int) -> Array:
    return np.lib.format.open_memmap(file, "w+", np.dtype(kind), (rows,))
