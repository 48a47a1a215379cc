"""The file and position of each byte.

See docs/reference/protocol/storing.md, "Segments", "Commit log" and "Consume queue".
"""

from typing import Final, NamedTuple

LOG_SEGMENT_BYTES: Final = 1 << 30
ENTRY_BYTES: Final = 20
QUEUE_SEGMENT_ENTRIES: Final = 300_000
FILLER_BYTES: Final = 8
"""The minimum size of the filler at the end of every full segment of the commit log."""


class Place(NamedTuple):
    segment: int  # position of the segment's first byte, which is its name
    position: int  # position in the segment, in bytes


def segment_name(segment: int) -> str:
    """Return 20 decimal digits, so that names sort as positions do."""
    return f"{segment:020d}"


def place_in_log(commit_offset: int, segment_bytes: int = LOG_SEGMENT_BYTES) -> Place:
    """Return the place of the byte with that commit offset."""
    position = commit_offset % segment_bytes
    return Place(commit_offset - position, position)


def place_of_entry(queue_offset: int, segment_entries: int = QUEUE_SEGMENT_ENTRIES) -> Place:
    """Return the place of the entry of that offset in a consume queue."""
    return place_in_log(queue_offset * ENTRY_BYTES, segment_entries * ENTRY_BYTES)


def entry_at(place: Place) -> int:
    """Return the queue offset of the entry at a place; the inverse of `place_of_entry`."""
    return (place.segment + place.position) // ENTRY_BYTES


def append_offset(log_end: int, record_bytes: int, segment_bytes: int = LOG_SEGMENT_BYTES) -> int:
    """Return the commit offset of the next record.

    It is in this segment if a filler fits after it, otherwise in the next.
    """
    place = place_in_log(log_end, segment_bytes)
    left = segment_bytes - place.position
    return log_end if record_bytes + FILLER_BYTES <= left else log_end + left
