"""Offset arithmetic, with the examples of docs/reference/protocol/storing.md, "Segments" and "Commit log"."""

from mqproof.reference.rules import offsets


def test_the_names_of_second_segments_are_the_documented_ones() -> None:
    assert offsets.segment_name(offsets.place_in_log(1 << 30).segment) == "00000000001073741824"
    assert offsets.place_of_entry(300_000) == (6_000_000, 0)
    assert offsets.segment_name(6_000_000) == "00000000000006000000"


def test_a_record_goes_to_the_next_segment_if_no_filler_fits_after_it() -> None:
    assert offsets.append_offset(0, 92, segment_bytes=100) == 0
    assert offsets.append_offset(0, 93, segment_bytes=100) == 100
    assert offsets.append_offset(190, 91, segment_bytes=100) == 200
