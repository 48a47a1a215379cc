"""Tests the bytes of a ledger entry. Source: docs/reference/protocol/dledger.md, "DLedger files"."""

import struct

import msgspec
import pytest

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import EntryError
from mqproof.impl.dledger.rpc_bodies import NORMAL

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
