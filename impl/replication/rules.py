"""The rules of replication, each by the one function that is all of it: those of spec/tla/Replication.tla.

Whoever wants to see what a rule is good for replaces that function and watches which invariant breaks. The
functions are called through this module, so replacing the attribute is enough.
"""

from typing import Final

RULES: Final = {
    "usable-when-near": "mqproof.impl.replication.rules:slave_usable",
    "reached-when-acknowledged": "mqproof.impl.replication.rules:replica_reached",
    "no-acknowledgement-beyond-the-end": "mqproof.impl.replication.rules:acked_position",
    "first-report-asks-for-the-last-record": "mqproof.impl.replication.rules:first_report",
    "last-record-compared": "mqproof.impl.replication.rules:agrees",
    "continues-where-the-log-ends": "mqproof.impl.replication.rules:continues",
    "slaves-own-commits-kept": "mqproof.impl.replication.rules:merged_offset",
    "replica-status-wins": "mqproof.impl.store.results:put_status",
}
"""Rule to "module:object"."""


def slave_usable(slaves: int, end: int, acked: int, fall_behind_bytes_max: int) -> bool:
    """May a send whose record ends at `end` wait for a slave, by 4.9's rule?"""
    return slaves > 0 and end - acked < fall_behind_bytes_max


def replica_reached(end: int, acked: int) -> bool:
    """A slave's log has all up to `end`."""
    return end <= acked


def acked_position(acked: int, reported: int, end: int) -> int:
    """How far a slave is after a report: never back, and nothing beyond the master's own end counts."""
    return max(acked, reported) if reported <= end else acked


def first_report(last_record: int | None, end: int) -> int:
    """What a slave asks for first: its last record, to compare it. A position of 0 would be that of a slave
    that has nothing, so a last record that begins there is compared from its second byte on."""
    return end if last_record is None else max(1, last_record)


def agrees(own: bytes, masters: bytes) -> bool:
    """The slave's last record is its master's; then all before it is the same, too: a record says when it was
    stored and where it stands."""
    return own == masters


def continues(position: int, end: int) -> bool:
    """Bytes are taken only where the slave's log ends."""
    return position == end


def merged_offset(own: int | None, masters: int, *, untold: bool) -> int:
    """The consumer offset of a slave that hears its master's: that one, higher or lower, but for what a
    consumer committed to the slave and the master does not know yet."""
    return own if untold and own is not None and own > masters else masters
