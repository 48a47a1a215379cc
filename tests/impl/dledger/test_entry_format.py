"""Tests the bytes of a ledger entry. Source: docs/reference/protocol/dledger.md, "DLedger files"."""

import struct
import zlib

import msgspec
import pytest

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import EntryError
from mqproof.impl.dledger.limits import INDEX_MAX, POSITION_MAX, TERM_MAX
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL

ENTRY = entry_format.make(index=7, term=3, magic=NORMAL, pos=96, body=b"hello")
DATA = entry_format.encode(ENTRY)


def test_an_entry_is_its_header_and_its_body() -> None:
    header = struct.pack(">iiqqqiiii", NORMAL, 53, 7, 3, 96, 0, ENTRY.chain_crc, 0, 5)
    assert header + b"hello" == DATA
    assert entry_format.decode(DATA, 96) == ENTRY
    assert entry_format.place_of(DATA) == (7, 3)
    assert entry_format.peek(DATA) == 53


def test_released_entries_have_no_checksum_and_are_read() -> None:
    released = msgspec.structs.replace(ENTRY, chain_crc=0)
    assert entry_format.decode(entry_format.encode(released), 96) == released


UNCHECKED = range(36, 48)
"""The channel and the two checksums themselves. Released DLedger leaves all of them 0."""


@pytest.mark.parametrize("at", sorted({*range(len(DATA))} - {*UNCHECKED}))
def test_a_changed_byte_of_the_header_or_body_is_noticed(at: int) -> None:
    spoilt = bytearray(DATA)
    spoilt[at] ^= 1
    with pytest.raises(EntryError):
        entry_format.decode(bytes(spoilt), 96)


def test_a_changed_checksum_is_noticed() -> None:
    spoilt = msgspec.structs.replace(ENTRY, chain_crc=ENTRY.chain_crc ^ 1)
    with pytest.raises(EntryError, match="checksum"):
        entry_format.decode(entry_format.encode(spoilt), 96)


def test_a_filler_fills_the_rest_of_a_segment() -> None:
    assert entry_format.peek(entry_format.filler(100)) == -1
    assert len(entry_format.filler(100)) == 100
    assert entry_format.peek(b"\0" * 8) == 0


def test_an_index_unit_has_the_position_of_its_entry() -> None:
    assert entry_format.decode_unit(entry_format.encode_unit(ENTRY)) == (96, 53, 7, 3)
    with pytest.raises(EntryError, match="a unit of 3 bytes"):
        entry_format.decode_unit(b"abc")


def test_a_checksum_is_never_0_which_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "crc32", lambda *_: 0x8000_0000)
    assert entry_format.make(7, 3, NORMAL, 96, b"hello").chain_crc == 1
    monkeypatch.setattr(zlib, "crc32", lambda *_: 0x8000_0002)
    assert entry_format.make(7, 3, NORMAL, 96, b"hello").chain_crc == 2


@pytest.mark.parametrize(
    ("front", "size"),
    [
        (struct.pack(">ii", NORMAL, 48), 48),
        (struct.pack(">ii", NORMAL, 47), 0),
        (struct.pack(">ii", NO_OP, 48), 48),
        (struct.pack(">ii", 7, 48), 0),
        (struct.pack(">ii", -1, 8), -1),
        (struct.pack(">ii", NORMAL, 48)[:7], 0),
    ],
)
def test_the_size_of_an_entry_is_read_from_its_first_8_bytes(front: bytes, size: int) -> None:
    assert entry_format.peek(front) == size


@pytest.mark.parametrize(
    ("index", "term", "is_possible"),
    [(0, 1, True), (-1, 1, False), (0, 0, False), (INDEX_MAX, TERM_MAX, True), (INDEX_MAX + 1, 1, False),
     (0, TERM_MAX + 1, False)],
)  # fmt: skip
def test_an_entry_has_a_possible_index_and_term(index: int, term: int, is_possible: bool) -> None:
    data = entry_format.encode(entry_format.make(index, term, NORMAL, 96, b"hello"))
    unit = struct.pack(">iqiqq", NORMAL, 96, 53, index, term)
    if is_possible:
        assert entry_format.decode(data, 96).index == index
        assert entry_format.decode_unit(unit) == (96, 53, index, term)
        return
    with pytest.raises(EntryError, match=f"index {index} and term {term}, at most"):
        entry_format.decode(data, 96)
    with pytest.raises(EntryError, match=f"index {index} and term {term}, at most"):
        entry_format.decode_unit(unit)


@pytest.mark.parametrize(
    ("magic", "pos", "size", "complaint"),
    [(7, 0, 48, "magic 7 in the index"), (NORMAL, -1, 48, "48 bytes at -1"), (NO_OP, 0, 47, "47 bytes at 0"),
     (NORMAL, POSITION_MAX + 1, 48, f"48 bytes at {POSITION_MAX + 1}")],
)  # fmt: skip
def test_a_unit_that_describes_no_entry_is_refused(magic: int, pos: int, size: int, complaint: str) -> None:
    with pytest.raises(EntryError, match=complaint):
        entry_format.decode_unit(struct.pack(">iqiqq", magic, pos, size, 0, 1))
    assert entry_format.decode_unit(struct.pack(">iqiqq", NO_OP, POSITION_MAX, 48, 0, 1)) == (
        POSITION_MAX,
        48,
        0,
        1,
    )


def test_each_field_has_its_place_in_the_header() -> None:
    entry = msgspec.structs.replace(ENTRY, channel=11, chain_crc=0, body_crc=13)
    data = entry_format.encode(entry)
    assert data == struct.pack(">iiqqqiiii", NORMAL, 53, 7, 3, 96, 11, 0, 13, 5) + b"hello"
    assert entry_format.decode(data, 96) == entry
    unit = struct.pack(">iqiqq", NORMAL, 96, 53, 7, 3)
    assert entry_format.encode_unit(entry) == unit


def test_the_checksum_is_the_crc_of_the_first_36_bytes_and_the_body() -> None:
    assert ENTRY.chain_crc == zlib.crc32(DATA[:36] + b"hello") & 0x7FFF_FFFF


@pytest.mark.parametrize("size", [8, 9])
def test_a_filler_has_its_size_and_zeros(size: int) -> None:
    assert entry_format.filler(size) == struct.pack(">ii", -1, size) + bytes(size - 8)


@pytest.mark.parametrize(("size", "is_header"), [(47, False), (48, True)])
def test_an_entry_is_at_least_a_header(size: int, is_header: bool) -> None:
    data = entry_format.encode(entry_format.make(0, 1, NO_OP, 0, b""))[:size]
    if is_header:
        assert entry_format.decode(data, 0).magic == NO_OP
    else:
        with pytest.raises(EntryError, match="an entry of 47 bytes, at least 48 expected"):
            entry_format.decode(data, 0)
