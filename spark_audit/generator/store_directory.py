"""A store directory with known faults, for tests of the checks and of the checks' mutants.

It also contains legal remains: queue and index entries of expired records, a filler, a torn last record,
entries beyond the log's end, and a last record that is not yet dispatched.
"""

import json
import shutil
import struct
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import HEADER_BYTES
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL
from mqproof.impl.remoting.message import Message
from mqproof.impl.store.files import record
from mqproof.impl.store.files.index import key_hash
from mqproof.impl.store.files.index_file import Header

BROKER: Final = "broker-s"
SLAVE: Final = "broker-s:1"
MEMBERS: Final = ("ledger-0", "ledger-1", "ledger-2")
TOPIC: Final = "stored"
REPLICATED: Final = "replicated"
GROUP: Final = "readers"
QUEUES: Final = 3
RECORDS: Final = 90
EXPIRED: Final = 4
"""Number of offsets of each queue whose records were deleted with their segment."""
SLOTS: Final = 50
SEGMENT_BYTES: Final = 8192
FORGOTTEN: Final = "forgotten"
RESURRECTED: Final = 57
ABSENT: Final = "m_acknowledged_and_gone"

FAULTS: Final[dict[str, str]] = {
    "altered": "a byte of a record's body has changed (FLUSH-5)",
    "dangling": "a queue entry points between two records (FLUSH-3)",
    "misplaced": "a queue entry points at a record of another queue (FLUSH-3)",
    "undispatched": "a record has no queue entry, later ones have (FLUSH-6)",
    "collision": "two records have one queue offset (FLUSH-4)",
    "gap": "a queue offset is missing (FLUSH-4)",
    "index_dangling": "an index entry points between two records (FLUSH-6)",
    "ahead": "a group committed an offset beyond the end of the queue (DELIV-1)",
    "absent": "acknowledged with SEND_OK, but not in the store (DELIV-1)",
    "forgotten": "the topic of a record is not in topics.json (DELIV-1)",
    "time_back": "the store time of a record is ten minutes before that of the previous record (FLUSH-5)",
    "resurrected": "a record that recovery cut off is in the store (FLUSH-5)",
}

_AT: Final = {
    "altered": 30, "time_back": 54, "resurrected": RESURRECTED,
    "dangling": 34, "misplaced": 38, "undispatched": 42, "collision": 46, "gap": 50,
}  # fmt: skip
"""Number of the record that has each fault."""
_UNIT: Final = struct.Struct(">qiq")
_ENTRY: Final = struct.Struct(">iqii")
_TIME_MS: Final = 1_700_000_000_000


def write_store(folder: Path, faults: Collection[str] = tuple(FAULTS)) -> list[dict[str, Any]]:
    """Write the store with these faults. Returns the violations that an audit must find, by schema.KEY."""
    store = _Store(faults)
    store.put_sole_record()
    for number in range(RECORDS):
        store.put(number)
    store.put_torn_record()
    store.expect_losses()
    store.write(folder)
    return store.truth


class _Store:
    """A store under construction: its segments, queues, index and offsets, and its violations."""

    def __init__(self, faults: Collection[str]) -> None:
        self.truth: list[dict[str, Any]] = []
        self._faults = faults
        self._log, self._at = {SEGMENT_BYTES: bytearray()}, SEGMENT_BYTES
        self._units = {q: {k: (100 * k + q, 91, 0) for k in range(EXPIRED)} for q in range(QUEUES)}
        self._index = [(key_hash(TOPIC, "expired"), 100)]
        self._offsets = dict.fromkeys(range(QUEUES), EXPIRED)
        self._sole_unit = (0, 0, 0)

    def put_sole_record(self) -> None:
        """Append the only record of its topic."""
        data = record.encode(
            Message(FORGOTTEN, b"body", {"UNIQ_KEY": "m_forgotten"}, 0, born_timestamp_ms=_TIME_MS)
        )
        record.place(data, 0, self._at, _TIME_MS)
        self._sole_unit = (self._at, len(data), 0)
        self._append(data)
        if "forgotten" in self._faults:
            self._expect("forgotten", "DELIV-1", "metadata-loss", topic=FORGOTTEN)

    def put(self, number: int) -> None:
        """Append a record and its entries in a queue and in the index."""
        fault = next((name for name in self._faults if _AT.get(name) == number), "")
        queue_id = number % QUEUES
        place = {"topic": TOPIC, "queue_id": queue_id, "queue_offset": self._offsets[queue_id]}
        if fault == "gap":
            self._expect(fault, "FLUSH-4", "cq-hole", **place)
            self._offsets[queue_id] += 1
        if fault == "collision":
            self._offsets[queue_id] -= 1
            place["queue_offset"] = self._offsets[queue_id]
            self._expect(fault, "FLUSH-4", "cq-offset-collision", **place)
        data = _record(number, queue_id)
        self._roll(len(data))
        stored_ms = _TIME_MS + number
        if fault == "time_back":
            stored_ms -= 600_000
            self._expect(fault, "FLUSH-5", "time-anomaly", msg_id=f"m_{number}", **place)
        if fault == "resurrected":
            self._expect(fault, "FLUSH-5", "resurrected-tail", msg_id=f"m_{number}", **place)
        record.place(data, self._offsets[queue_id], self._at, stored_ms)
        if fault == "altered":
            data[90] ^= 1
            self._expect(fault, "FLUSH-5", "altered-record")
        self._units[queue_id][self._offsets[queue_id]] = self._unit(fault, number, len(data), place)
        self._offsets[queue_id] += 1
        self._index.append((key_hash(TOPIC, f"m_{number}"), self._at))
        self._append(data)

    def _unit(self, fault: str, number: int, size: int, place: dict[str, Any]) -> tuple[int, int, int]:
        """Return the entry of a record in its queue."""
        if fault == "dangling":
            self._expect(fault, "FLUSH-3", "dangling-entry", **place)
            return (self._at + 1, size, 0)
        if fault == "misplaced":
            self._expect(fault, "FLUSH-3", "wrong-entry", **place)
            return (self._at + size, size, 0)
        if fault == "undispatched":
            self._expect(fault, "FLUSH-6", "not-dispatched", msg_id=f"m_{number}", **place)
            return (0, 0, 0)
        if number == RECORDS - 1:
            # Dispatch is one record behind, as it may be after a broker was killed.
            return (0, 0, 0)
        return (self._at, size, 0)

    def put_torn_record(self) -> None:
        """Append the torn last record, and entries that point at it and beyond it."""
        self._log[max(self._log)] += _record(RECORDS, 0)[:60]
        for queue_id, beyond in ((0, self._at), (1, self._at + 500)):
            self._units[queue_id][self._offsets[queue_id]] = (beyond, 130, 0)
        self._index.append((key_hash(TOPIC, "torn"), self._at))
        if "index_dangling" in self._faults:
            self._index.append((7, SEGMENT_BYTES + 5))
            self._expect("index_dangling", "FLUSH-6", "index-dangling")

    def expect_losses(self) -> None:
        """Expect the commit beyond the queue's end, and the acknowledged message that is absent."""
        if "ahead" in self._faults:
            place = {"topic": TOPIC, "queue_id": 2, "queue_offset": self._offsets[2] + 5}
            self._expect("ahead", "DELIV-1", "offset-ahead", group=GROUP, **place)
        if "absent" in self._faults:
            place = {"topic": TOPIC, "queue_id": 0, "queue_offset": self._offsets[0] - 1}
            self._expect("absent", "DELIV-1", "not-in-store", msg_id=ABSENT, **place)

    def write(self, folder: Path) -> None:
        committed = {**self._offsets, 2: self._offsets[2] + 5 * ("ahead" in self._faults)}
        _write(folder, self._log, self._units, self._index, committed)
        _write_queue(folder, FORGOTTEN, 0, {0: self._sole_unit})
        _write_topics(folder, {TOPIC: QUEUES} | ({} if "forgotten" in self._faults else {FORGOTTEN: 1}))

    def _append(self, data: bytes | bytearray) -> None:
        self._log[max(self._log)] += data
        self._at += len(data)

    def _roll(self, size: int) -> None:
        """Begin the next segment if a record of this size does not fit into the last one."""
        start = max(self._log)
        if self._at + size + record.FILLER_BYTES > start + SEGMENT_BYTES:
            self._log[start] += record.filler(start + SEGMENT_BYTES - self._at)
            self._at = start + SEGMENT_BYTES
            self._log[self._at] = bytearray()

    def _expect(self, fault: str, invariant: str, rule: str, **key: Any) -> None:
        row = dict.fromkeys(("topic", "queue_id", "queue_offset", "msg_id", "group"))
        of_rule = {"anomaly": fault, "invariant": invariant, "rule": rule, "broker": BROKER}
        self.truth.append(of_rule | row | key)


def write_slave(folder: Path) -> list[dict[str, Any]]:
    """Write the log of a slave of the store that `write_store` writes with all faults.

    Returns the violations.

    One record's flag is changed, and one record replaces two of the master's. The slave is ahead of its
    master, which lost its tail.
    """
    truth = [
        row | {"broker": SLAVE} for row in write_store(folder) if row["invariant"] in ("FLUSH-4", "FLUSH-5")
    ]
    # Violations that need an event log are expected for the master only.
    truth = [row for row in truth if row["anomaly"] != "resurrected"]
    for name in ("consumequeue", "index", "config"):
        shutil.rmtree(folder / name)
    file = max((folder / "commitlog").iterdir())
    data, base = bytearray(file.read_bytes()), int(file.name)
    found, at = [], 0
    while any(data[at : at + 4]):
        found.append((at, record.peek(bytes(data[at : at + 8]))[0]))
        at += found[-1][1]
    *whole, (torn_at, _) = found

    def expect(rule: str, at: int, invariant: str = "REPL-2") -> None:
        stored = record.decode(bytes(data[at : at + dict(found)[at]]), base + at)
        place = {"topic": TOPIC, "queue_id": stored.message.queue_id, "queue_offset": stored.queue_offset}
        msg_id = None if invariant == "FLUSH-4" else stored.message_id
        row = {"anomaly": rule, "invariant": invariant, "rule": rule, "broker": SLAVE, "group": None}
        truth.append(row | place | {"msg_id": msg_id})

    changed, merged, overwritten = whole[1][0], whole[4], whole[5]
    data[changed + 19] ^= 1
    expect("replica-divergence", changed)
    expect("replica-divergence", merged[0])
    expect("missing-on-slave", overwritten[0])
    expect("cq-hole", overwritten[0], "FLUSH-4")
    one = record.decode(bytes(data[merged[0] : merged[0] + merged[1]]), base + merged[0])
    longer = replace(one.message, body=one.message.body + b"x" * overwritten[1])
    encoded = record.encode(longer)
    record.place(encoded, one.queue_offset, base + merged[0], one.store_timestamp_ms)
    data[merged[0] : merged[0] + len(encoded)] = encoded
    tail = _record(RECORDS, 0)
    record.place(tail, EXPIRED + RECORDS // QUEUES, base + torn_at, _TIME_MS + RECORDS)
    data[torn_at : torn_at + len(tail)] = tail
    file.write_bytes(data)
    return truth


def write_members(folder: Path) -> list[dict[str, Any]]:
    """Write the stores MEMBERS of one ledger, each into the folder of its name. Returns the violations.

    One member has a different record in an entry, and a no-op where the others have a record. Another member
    has lost a record to damage, and has a tail that the next leader never received: both are legal.
    """
    one, other, behind = MEMBERS
    agreed = [(1, NORMAL, _entry_body(number)) for number in range(6)]
    led = [(2, NORMAL, _entry_body(number)) for number in range(6, 10)]
    changed = _entry_body(3)
    changed[19] ^= 1
    no_op = (2, NO_OP, bytearray(len(led[2][2])))
    _write_ledger(folder / one, [*agreed, *led])
    _write_ledger(folder / other, [*agreed[:3], (1, NORMAL, changed), *agreed[4:], *led[:2], no_op, *led[3:]])
    tail = [(1, NORMAL, _entry_body(number)) for number in (20, 21)]
    data = _write_ledger(folder / behind, [*agreed, *tail])
    damaged = bytearray(data.read_bytes())
    damaged[4 * (HEADER_BYTES + len(agreed[0][2])) + HEADER_BYTES + 90] ^= 1
    data.write_bytes(damaged)
    place = {"topic": REPLICATED, "queue_id": 0, "group": None}
    divergent = {"anomaly": "divergent-entry", "invariant": "RAFT-3", "rule": "divergent-entry"} | place
    altered = {"anomaly": "altered", "invariant": "FLUSH-5", "rule": "altered-record", "broker": behind}
    return [
        *(divergent | {"broker": member, "queue_offset": 3, "msg_id": "e_3"} for member in (other, behind)),
        divergent | {"broker": other, "queue_offset": 8, "msg_id": "e_8"},
        altered | dict.fromkeys(("topic", "queue_id", "queue_offset", "msg_id", "group")),
    ]


def _entry_body(number: int) -> bytearray:
    """Return the record in an entry.

    Entry 9 is in a queue of its own. The entry replaced by a no-op is then the last of its queue, which has
    no hole.
    """
    keys = {"UNIQ_KEY": f"e_{number}"}
    queue_id = int(number == 9)
    return record.encode(
        Message(REPLICATED, b"body" * 20, keys, queue_id, born_timestamp_ms=_TIME_MS + number)
    )


def _write_ledger(folder: Path, entries: Sequence[tuple[int, int, bytearray]]) -> Path:
    """Write entries, each given as term, magic and body. Returns the file."""
    data = b""
    for index, (term, magic, body) in enumerate(entries):
        if magic == NORMAL:
            record.place(body, index, len(data) + HEADER_BYTES, _TIME_MS + index)
        data += entry_format.encode(entry_format.make(index, term, magic, len(data), bytes(body)))
    file = folder / "dledger-n" / "data" / f"{0:020d}"
    file.parent.mkdir(parents=True)
    file.write_bytes(data.ljust(SEGMENT_BYTES, b"\0"))
    return file


def events() -> list[dict[str, Any]]:
    """Return the events of a producer for a stored message, and for the one of fault `absent`."""
    acked = (("m_60", 0, EXPIRED + 60 // QUEUES), (ABSENT, 0, EXPIRED + RECORDS // QUEUES - 1))
    rows: list[dict[str, Any]] = []
    for msg_id, queue_id, queue_offset in acked:
        for kind in ("send", "send_ack"):
            row: dict[str, Any] = {
                "node": "producer-s",
                "kind": kind,
                "msg_id": msg_id,
                "topic": TOPIC,
                "seq": len(rows),
            }
            row |= {"ts": _TIME_MS * 1000 + len(rows), "attrs": {"broker": BROKER}}
            if kind == "send_ack":
                row |= {"queue_id": queue_id, "queue_offset": queue_offset, "status": "SEND_OK"}
            rows.append(row)
    return rows + _resurrection()


def _resurrection() -> list[dict[str, Any]]:
    """Return a broker's events for a record that recovery truncated, and for one that it appended again."""
    rows: list[dict[str, Any]] = []
    steps = (
        ("recover", None, 0),
        ("append", f"m_{RESURRECTED}", 1_000_000),
        ("append", "m_61", 1_000_200),
        ("recover", None, 1_000_000),
        ("append", "m_61", 1_000_000),
    )
    for number, (kind, msg_id, commit_offset) in enumerate(steps):
        row = {"node": BROKER, "kind": kind, "seq": number, "ts": _TIME_MS * 1000 + number}
        if kind == "append":
            row |= {"msg_id": msg_id, "topic": "cut", "queue_id": 0, "queue_offset": number}
        rows.append(row | {"commit_offset": commit_offset})
    return rows


def _record(number: int, queue_id: int) -> bytearray:
    return record.encode(
        Message(
            TOPIC,
            b"body" * 20,
            {"UNIQ_KEY": f"m_{number}", "KEYS": f"k_{number}"},
            queue_id,
            born_timestamp_ms=_TIME_MS + number,
        )
    )


def _write(
    folder: Path,
    log: dict[int, bytearray],
    units: dict[int, dict[int, tuple[int, int, int]]],
    index: list[tuple[int, int]],
    offsets: dict[int, int],
) -> None:
    (folder / "commitlog").mkdir(parents=True)
    for start, data in log.items():
        (folder / "commitlog" / f"{start:020d}").write_bytes(data.ljust(SEGMENT_BYTES, b"\0"))
    for queue_id, queue in units.items():
        _write_queue(folder, TOPIC, queue_id, queue)
    (folder / "index").mkdir()
    header = Header(_TIME_MS, _TIME_MS + RECORDS, 100, max(at for _, at in index), 1, len(index) + 1)
    entries = b"".join(_ENTRY.pack(hashed, at, 0, 0) for hashed, at in index)
    data = bytearray(header.encode() + bytes(4 * SLOTS + _ENTRY.size) + entries)
    (folder / "index" / "20231114221320000").write_bytes(data)
    (folder / "config").mkdir()
    # As released brokers print it: numeric keys are not quoted.
    text = json.dumps({"offsetTable": {f"{TOPIC}@{GROUP}": {f"<{q}>": at for q, at in offsets.items()}}})
    (folder / "config" / "consumerOffset.json").write_text(text.replace('"<', "").replace('>"', ""))
    (folder / "abort").touch()


def _write_queue(folder: Path, topic: str, queue_id: int, units: dict[int, tuple[int, int, int]]) -> None:
    path = folder / "consumequeue" / topic / str(queue_id)
    path.mkdir(parents=True)
    data = bytearray(_UNIT.size * 64)
    for queue_offset, unit in units.items():
        _UNIT.pack_into(data, queue_offset * _UNIT.size, *unit)
    (path / f"{0:020d}").write_bytes(data)


def _write_topics(folder: Path, topics: dict[str, int]) -> None:
    table = {name: {"topicName": name, "readQueueNums": n, "writeQueueNums": n} for name, n in topics.items()}
    (folder / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
