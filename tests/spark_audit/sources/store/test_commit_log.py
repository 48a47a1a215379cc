"""Decodes segments: each record has the fields of the codec, and every byte is in exactly one row.

This must be true for any splits and any damage.
"""

import random
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from mqproof.impl.store.files import record
from mqproof.spark_audit.sources.store.commit_log import DAMAGE, FILLER, RECORD, ZEROS, LedgerSegment, Segment
from tests.spark_audit.sources.logs import BASE, ledger, message, placed, segment

Rows = list[dict[str, Any]]
SIZE = 16384


def read(log: bytes, *cuts: int, kind: type[Segment] = Segment) -> Rows:
    """Return the rows of all ranges, in order of position."""
    edges = [0, *sorted(cuts), len(log)]
    rows: Rows = []
    for start, end in pairwise(edges):
        for batch in kind(log, BASE, "f").batches(start, end, with_body=True):
            rows += batch.to_pylist()
    return sorted(rows, key=lambda row: row["commit_offset"])


def kinds(rows: Rows) -> list[tuple[str, int, int]]:
    """Return one tuple for each run of equal kinds, with its position and bytes."""
    found: list[tuple[str, int, int]] = []
    for row in rows:
        if found and found[-1][0] == row["kind"]:
            found[-1] = (row["kind"], found[-1][1], found[-1][2] + row["size"])
        else:
            found.append((row["kind"], row["commit_offset"] - BASE, row["size"]))
    return found


def check_against_codec(log: bytes, rows: Rows) -> None:
    """Assert that each record has the fields of the codec, and that every byte is in exactly one row."""
    at = BASE
    for row in rows:
        assert row["commit_offset"] == at
        at += row["size"]
        if row["kind"] != RECORD:
            continue
        begin = row["commit_offset"] - BASE
        stored = record.decode(log[begin : begin + row["size"]], row["commit_offset"])
        one = stored.message
        assert (row["msg_id"], row["queue_offset"]) == (stored.message_id, stored.queue_offset)
        assert (row["topic"], row["queue_id"], row["body"]) == (one.topic, one.queue_id, one.body)
        assert (row["born_ms"], row["stored_ms"]) == (one.born_timestamp_ms, stored.store_timestamp_ms)
        assert (row["flag"], row["reconsume_times"]) == (one.flag, one.reconsume_times)
        assert (row["prepared_offset"], row["sys_flag"]) == (one.prepared_transaction_offset, one.sys_flag)
        assert (row["keys"], row["tags"]) == (one.properties.get("KEYS"), one.properties.get("TAGS"))
        assert row["born_host"] == _host(one.born_host)
        assert row["store_host"] == _host(one.store_host)
        assert row["body_crc"] == record.body_crc(one.body)
    assert at == BASE + len(log)


def _host(address: tuple[str, int]) -> str:
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


def test_every_field_equals_that_of_the_codec() -> None:
    log = segment([message(number) for number in range(50)])
    rows = read(log)
    assert len(rows) == 50
    check_against_codec(log, rows)


def test_bytes_that_are_not_records_have_their_own_kinds() -> None:
    some = [message(number) for number in range(9)]
    data = segment(some)
    rest = SIZE - len(data)
    assert kinds(read(segment(some, SIZE))) == [(RECORD, 0, len(data)), (ZEROS, len(data), rest)]
    assert kinds(read(segment(some, SIZE, full=True))) == [(RECORD, 0, len(data)), (FILLER, len(data), rest)]
    assert kinds(read(bytes(SIZE))) == [(ZEROS, 0, SIZE)]


def test_a_torn_tail_is_damage_up_to_its_last_byte() -> None:
    data = segment([message(number) for number in range(9)])
    last = len(data) - len(segment([message(number) for number in range(8)]))
    log = data[:-5].ljust(SIZE, b"\0")
    rows = read(log)
    assert [kind for kind, _, _ in kinds(rows)] == [RECORD, DAMAGE, ZEROS]
    assert rows[8]["commit_offset"] == BASE + len(data) - last
    assert "torn" in rows[8]["detail"]


@pytest.mark.parametrize(
    ("at", "value", "detail"),
    [
        (90, b"\xff", "body has CRC"),
        (0, b"\x7f", "record says 213"),
        (3, b"\x01", "record says"),
        (4, b"\x00", "magic 0x00a320a7"),
        (28, b"\x01", "record says position"),
        (12, b"\xff", "queue id -"),
    ],
)
def test_a_damaged_record_is_reported_and_its_neighbours_are_read(at: int, value: bytes, detail: str) -> None:
    some = [message(number, WAIT="true") for number in (1, 2, 3)]
    log, begin = bytearray(segment(some)), len(segment(some[:1]))
    log[begin + at : begin + at + 1] = value
    rows = read(bytes(log))
    assert [row["kind"] for row in rows] == [RECORD, DAMAGE, RECORD]
    assert [row["msg_id"] for row in rows] == ["m_1", None, "m_3"]
    assert rows[1]["commit_offset"] == BASE + begin
    assert detail in rows[1]["detail"]
    assert sum(row["size"] for row in rows) == len(log)


def test_a_hole_of_zeros_between_records_is_damage() -> None:
    log = bytearray(segment([message(number) for number in range(1, 5)]))
    begin = len(segment([message(1)]))
    size = len(segment([message(1), message(2)])) - begin
    log[begin : begin + size] = bytes(size)
    rows = read(bytes(log))
    assert [row["kind"] for row in rows] == [RECORD, DAMAGE, RECORD, RECORD]
    assert "zeros where a record should be" in rows[1]["detail"]


def test_a_record_copied_into_a_body_is_not_a_record() -> None:

    inner = placed(message(1), 5)
    log = segment([structs.replace(message(2), body=inner * 40), message(3)])
    assert [row["msg_id"] for row in read(log, 300, 900, 2000)] == ["m_2", "m_3"]


def test_ambiguous_property_names_are_read_like_the_codec() -> None:
    first = placed(message(1, MYKEYS="not these", A="x"), BASE)
    assert b"A\x01x" in first
    log = first + placed(message(2, XTAGS="nor these"), BASE + len(first))
    check_against_codec(log, read(log))
    # If a property occurs twice, its last value counts.
    renamed = log.replace(b"MYKEYS\x01", b"KEYS\x01yy").replace(b"XTAGS\x01", b"TAGS\x01z")
    rows = read(renamed)
    check_against_codec(renamed, rows)
    assert [row["keys"] for row in rows] == ["yynot these", "k"]


def test_without_a_unique_key_the_brokers_id_is_the_message_id() -> None:
    log = segment([message(number, UNIQ_KEY="") for number in (1, 7, 3)])
    check_against_codec(log, read(log))


@pytest.mark.parametrize("seed", range(60))
def test_any_splits_of_a_damaged_log_give_the_same_rows_for_every_byte(seed: int) -> None:
    choose = random.Random(seed)
    some = [message(choose.randrange(400)) for _ in range(choose.randrange(1, 40))]
    data = segment(some)
    log = bytearray(segment(some, len(data) + choose.choice([8, 100, 5000]), full=choose.random() < 0.5))
    for _ in range(choose.randrange(4)):
        at, size = choose.randrange(len(log)), choose.choice([1, 4, 50, 700])
        size = min(size, len(log) - at)
        log[at : at + size] = bytes(size) if choose.random() < 0.5 else choose.randbytes(size)
    whole = read(bytes(log))
    check_against_codec(bytes(log), whole)
    cuts = [choose.randrange(1, len(log)) for _ in range(choose.randrange(1, 9))]
    assert read(bytes(log), *cuts) == whole


def _kinds_of_ledger(log: bytes, *cuts: int) -> list[tuple[str, str | None]]:
    return [(row["kind"], row["msg_id"]) for row in read(log, *cuts, kind=LedgerSegment)]


def test_only_the_records_of_a_ledger_are_read() -> None:
    some = [None, message(1), message(2), None, message(3)]
    log = ledger(some)
    records = [(RECORD, f"m_{number}") for number in (1, 2, 3)]
    assert _kinds_of_ledger(log) == records
    assert _kinds_of_ledger(ledger(some, SIZE)) == [*records, (ZEROS, None)]
    assert _kinds_of_ledger(ledger(some, SIZE, full=True)) == [*records, (FILLER, None)]
    # A record states its own position.
    for row in read(log, kind=LedgerSegment):
        begin = row["commit_offset"] - BASE
        assert record.decode(log[begin : begin + row["size"]], row["commit_offset"])


@pytest.mark.parametrize(
    ("at", "value", "detail"),
    [
        (0, b"\x7f", "begin no entry"),
        (7, b"\x01", "begin no entry"),
        (31, b"\x01", "says position"),
        (48 + 90, b"\xff", "the checksum of entry"),
        (48 + 4, b"\x00", "the checksum of entry"),
    ],
)
def test_a_damaged_entry_is_reported_and_its_neighbours_are_read(at: int, value: bytes, detail: str) -> None:
    some = [message(number) for number in (1, 2, 3)]
    log, begin = bytearray(ledger([*some])), len(ledger([*some[:1]]))
    log[begin + at : begin + at + 1] = value
    rows = read(bytes(log), kind=LedgerSegment)
    assert [(row["kind"], row["msg_id"]) for row in rows] == [
        (RECORD, "m_1"),
        (DAMAGE, None),
        (RECORD, "m_3"),
    ]
    assert rows[1]["commit_offset"] == BASE + begin
    assert rows[1]["size"] == len(ledger([*some[:2]])) - begin
    assert detail in rows[1]["detail"]


@pytest.mark.parametrize("seed", range(60))
def test_any_splits_of_a_damaged_ledger_give_the_same_rows(seed: int) -> None:
    choose = random.Random(seed)
    some = [
        message(choose.randrange(400)) if choose.random() < 0.8 else None
        for _ in range(choose.randrange(1, 40))
    ]
    data = ledger(some)
    log = bytearray(ledger(some, len(data) + choose.choice([8, 100, 5000]), full=choose.random() < 0.5))
    for _ in range(choose.randrange(4)):
        at, size = choose.randrange(len(log)), choose.choice([1, 4, 50, 700])
        size = min(size, len(log) - at)
        log[at : at + size] = bytes(size) if choose.random() < 0.5 else choose.randbytes(size)
    whole = read(bytes(log), kind=LedgerSegment)
    cuts = [choose.randrange(1, len(log)) for _ in range(choose.randrange(1, 9))]
    assert read(bytes(log), *cuts, kind=LedgerSegment) == whole
    # No two rows have a byte in common.
    assert all(a["commit_offset"] + a["size"] <= b["commit_offset"] for a, b in pairwise(whole))
