"""A store directory with known faults, for tests of the checks and of the checks' mutants.

What brokers leave behind legally lies beside the faults: queues and an index that still name expired records,
a filler, a torn last record, entries that point behind the log's end, a last record not yet dispatched.
"""

import json
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from impl.message import Message
from impl.store import record
from impl.store.index import key_hash
from impl.store.index_file import Header

BROKER: Final = "broker-s"
TOPIC: Final = "stored"
GROUP: Final = "readers"
QUEUES: Final = 3
RECORDS: Final = 90
EXPIRED: Final = 4
"""Offsets of each queue whose records were deleted with their segment."""
SLOTS: Final = 50
SEGMENT_BYTES: Final = 8192
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
}

_AT: Final = {"altered": 30, "dangling": 34, "misplaced": 38, "undispatched": 42, "collision": 46, "gap": 50}
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
        record.place(data, offsets[queue_id], at, _TIME_MS + number)
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
    return truth


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
        path = folder / "consumequeue" / TOPIC / str(queue_id)
        path.mkdir(parents=True)
        data = bytearray(_UNIT.size * 64)
        for queue_offset, unit in queue.items():
            _UNIT.pack_into(data, queue_offset * _UNIT.size, *unit)
        (path / f"{0:020d}").write_bytes(data)
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
