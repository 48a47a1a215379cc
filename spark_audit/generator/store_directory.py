"""A store directory with known faults, for tests of the checks and of the checks' mutants.

What brokers leave behind legally lies beside the faults: queues and an index that still name expired records,
a filler, a torn last record, entries that point behind the log's end, a last record not yet dispatched.
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
from mqproof.impl.dledger.messages import NO_OP, NORMAL
from mqproof.impl.remoting.message import Message
from mqproof.impl.store import record
from mqproof.impl.store.index import key_hash
from mqproof.impl.store.index_file import Header

BROKER: Final = "broker-s"
SLAVE: Final = "broker-s:1"
MEMBERS: Final = ("ledger-0", "ledger-1", "ledger-2")
TOPIC: Final = "stored"
REPLICATED: Final = "replicated"
GROUP: Final = "readers"
QUEUES: Final = 3
RECORDS: Final = 90
EXPIRED: Final = 4
"""Offsets of each queue whose records were deleted with their segment."""
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
    "gap": "a queue offset is left out (FLUSH-4)",
    "index_dangling": "an index entry points between two records (FLUSH-6)",
    "ahead": "a group committed more than the queue ever held (DELIV-1)",
    "absent": "acknowledged with SEND_OK, and nowhere in the store (DELIV-1)",
    "forgotten": "topics.json does not know the topic of a record (DELIV-1)",
    "time_back": "a record was stored ten minutes before the one in front of it (FLUSH-5)",
    "resurrected": "a record that recovery had cut off is there (FLUSH-5)",
}

_AT: Final = {
    "altered": 30, "time_back": 54, "resurrected": RESURRECTED,
    "dangling": 34, "misplaced": 38, "undispatched": 42, "collision": 46, "gap": 50,
}  # fmt: skip
"""The number of the record that a fault befalls."""
_UNIT: Final = struct.Struct(">qiq")
_ENTRY: Final = struct.Struct(">iqii")
_TIME_MS: Final = 1_700_000_000_000


def plant(folder: Path, faults: Collection[str] = tuple(FAULTS)) -> list[dict[str, Any]]:
    """Write the store with these faults. Returns the violations that an audit must find, by schema.KEY."""
    truth: list[dict[str, Any]] = []
    log, at = {SEGMENT_BYTES: bytearray()}, SEGMENT_BYTES
    units = {q: {k: (100 * k + q, 91, 0) for k in range(EXPIRED)} for q in range(QUEUES)}
    index = [(key_hash(TOPIC, "expired"), 100)]
    offsets = dict.fromkeys(range(QUEUES), EXPIRED)

    def expect(fault: str, invariant: str, rule: str, **key: Any) -> None:
        row = dict.fromkeys(("topic", "queue_id", "queue_offset", "msg_id", "group"))
        truth.append({"anomaly": fault, "invariant": invariant, "rule": rule, "broker": BROKER} | row | key)

    # A topic of one record.
    first = record.encode(
        Message(FORGOTTEN, b"body", {"UNIQ_KEY": "m_forgotten"}, 0, born_timestamp_ms=_TIME_MS)
    )
    record.place(first, 0, at, _TIME_MS)
    log[at] += first
    topics = {TOPIC: QUEUES} | ({} if "forgotten" in faults else {FORGOTTEN: 1})
    forgotten_unit, at = (at, len(first), 0), at + len(first)
    if "forgotten" in faults:
        expect("forgotten", "DELIV-1", "metadata-loss", topic=FORGOTTEN)

    for number in range(RECORDS):
        fault = next((name for name in faults if _AT.get(name) == number), "")
        queue_id = number % QUEUES
        place = {"topic": TOPIC, "queue_id": queue_id, "queue_offset": offsets[queue_id]}
        if fault == "gap":
            expect(fault, "FLUSH-4", "cq-hole", **place)
            offsets[queue_id] += 1
        if fault == "collision":
            offsets[queue_id] -= 1
            place["queue_offset"] = offsets[queue_id]
            expect(fault, "FLUSH-4", "cq-offset-collision", **place)
        data = _record(number, queue_id)
        start = max(log)
        if at + len(data) + record.FILLER_BYTES > start + SEGMENT_BYTES:
            log[start] += record.filler(start + SEGMENT_BYTES - at)
            at = start + SEGMENT_BYTES
            log[at] = bytearray()
        stored_ms = _TIME_MS + number
        if fault == "time_back":
            stored_ms -= 600_000
            expect(fault, "FLUSH-5", "time-anomaly", msg_id=f"m_{number}", **place)
        if fault == "resurrected":
            expect(fault, "FLUSH-5", "resurrected-tail", msg_id=f"m_{number}", **place)
        record.place(data, offsets[queue_id], at, stored_ms)
        if fault == "altered":
            data[90] ^= 1
            expect(fault, "FLUSH-5", "altered-record")
        unit = (at, len(data), 0)
        if fault == "dangling":
            unit = (at + 1, len(data), 0)
            expect(fault, "FLUSH-3", "dangling-entry", **place)
        elif fault == "misplaced":
            unit = (at + len(data), len(data), 0)
            expect(fault, "FLUSH-3", "wrong-entry", **place)
        elif fault == "undispatched":
            unit = (0, 0, 0)
            expect(fault, "FLUSH-6", "not-dispatched", msg_id=f"m_{number}", **place)
        elif number == RECORDS - 1:
            # Dispatch is one record behind, as it may be when a broker is killed.
            unit = (0, 0, 0)
        units[queue_id][offsets[queue_id]] = unit
        offsets[queue_id] += 1
        index.append((key_hash(TOPIC, f"m_{number}"), at))
        log[max(log)] += data
        at += len(data)
    # A torn last record, and what points at it and behind it.
    log[max(log)] += _record(RECORDS, 0)[:60]
    for queue_id, beyond in ((0, at), (1, at + 500)):
        units[queue_id][offsets[queue_id]] = (beyond, 130, 0)
    index.append((key_hash(TOPIC, "torn"), at))
    if "index_dangling" in faults:
        index.append((7, SEGMENT_BYTES + 5))
        expect("index_dangling", "FLUSH-6", "index-dangling")
    if "ahead" in faults:
        committed = offsets[2] + 5
        place = {"topic": TOPIC, "queue_id": 2, "queue_offset": committed}
        expect("ahead", "DELIV-1", "offset-ahead", group=GROUP, **place)
    if "absent" in faults:
        place = {"topic": TOPIC, "queue_id": 0, "queue_offset": offsets[0] - 1}
        expect("absent", "DELIV-1", "not-in-store", msg_id=ABSENT, **place)
    _write(folder, log, units, index, {**offsets, 2: offsets[2] + 5 * ("ahead" in faults)})
    _write_queue(folder, FORGOTTEN, 0, {0: forgotten_unit})
    _write_topics(folder, topics)
    return truth


def plant_slave(folder: Path) -> list[dict[str, Any]]:
    """Write the log of a slave of the store that `plant` writes with all faults. Returns the violations.

    It has one record's flag changed, and one record where its master has two; and it is ahead of its master,
    which lost its tail.
    """
    truth = [row | {"broker": SLAVE} for row in plant(folder) if row["invariant"] in ("FLUSH-4", "FLUSH-5")]
    # What it takes an event log to see is told of the master only.
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

    changed, merged, swallowed = whole[1][0], whole[4], whole[5]
    data[changed + 19] ^= 1
    expect("replica-divergence", changed)
    expect("replica-divergence", merged[0])
    expect("missing-on-slave", swallowed[0])
    expect("cq-hole", swallowed[0], "FLUSH-4")
    one = record.decode(bytes(data[merged[0] : merged[0] + merged[1]]), base + merged[0])
    longer = replace(one.message, body=one.message.body + b"x" * swallowed[1])
    draft = record.encode(longer)
    record.place(draft, one.queue_offset, base + merged[0], one.store_timestamp_ms)
    data[merged[0] : merged[0] + len(draft)] = draft
    tail = _record(RECORDS, 0)
    record.place(tail, EXPIRED + RECORDS // QUEUES, base + torn_at, _TIME_MS + RECORDS)
    data[torn_at : torn_at + len(tail)] = tail
    file.write_bytes(data)
    return truth


def plant_members(folder: Path) -> list[dict[str, Any]]:
    """Write the stores MEMBERS of one ledger, each into the folder of its name. Returns the violations.

    One member has another record in an entry, and a no-op where the others have a record. One has lost a
    record to damage, and has a tail that its leader's successor never saw: both are legal.
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
    """The record in an entry. The one that has a no-op in its place is the last of its queue, that this has
    no hole."""
    keys = {"UNIQ_KEY": f"e_{number}"}
    queue_id = int(number == 9)
    return record.encode(
        Message(REPLICATED, b"body" * 20, keys, queue_id, born_timestamp_ms=_TIME_MS + number)
    )


def _write_ledger(folder: Path, entries: Sequence[tuple[int, int, bytearray]]) -> Path:
    """Term, magic and body of each. Returns the file."""
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
    """What a producer logged of a message that the store has, and of the one of fault `absent`."""
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
    """What the broker logged of one record that recovery cut off, and of one that it appended again then."""
    rows: list[dict[str, Any]] = []
    told = (
        ("recover", None, 0),
        ("append", f"m_{RESURRECTED}", 1_000_000),
        ("append", "m_61", 1_000_200),
        ("recover", None, 1_000_000),
        ("append", "m_61", 1_000_000),
    )
    for number, (kind, msg_id, commit_offset) in enumerate(told):
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
    # As released brokers print it: numbers as keys are not quoted.
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
