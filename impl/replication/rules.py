"""The rules of replication in spec/tla/Replication.tla, each implemented by exactly one function.

To see what a rule protects, replace its function and observe which invariant breaks. The functions are called
through this module, so replacing the attribute is enough.
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
"""Maps each rule to "module:object"."""


def slave_usable(slaves: int, end: int, acked: int, fall_behind_bytes_max: int) -> bool:
    """Return whether a send whose record ends at `end` may wait for a slave, by the rule of 4.9."""
    return slaves > 0 and end - acked < fall_behind_bytes_max


def replica_reached(end: int, acked: int) -> bool:
    """Return whether a slave's log has everything up to `end`."""
    return end <= acked


def acked_position(acked: int, reported: int, end: int) -> int:
    """Return a slave's position after a report.

    The position never decreases, and a report beyond the master's own end is ignored.
    """
    return max(acked, reported) if reported <= end else acked


def first_report(last_record: int | None, end: int) -> int:
    """Return the position that a slave asks for first: that of its last record, to compare it.

    Position 0 would mean that the slave has nothing. A last record that begins at 0 is therefore compared
    from its second byte on.
    """
    return end if last_record is None else max(1, last_record)


def agrees(own: bytes, masters: bytes) -> bool:
    """Return whether the slave's last record is equal to its master's.

    If it is, everything before it is equal too, because a record contains its store time and its position.
    """
    return own == masters


def continues(position: int, end: int) -> bool:
    """Return whether received bytes begin exactly where the slave's log ends."""
    return position == end


def merged_offset(own: int | None, masters: int, *, unsent: bool) -> int:
    """Return a slave's consumer offset after it receives its master's offset.

    The master's offset wins, whether higher or lower. The exception is a higher offset that a consumer
    committed to the slave and that the slave has not sent to the master yet (`unsent`).
    """
    return own if unsent and own is not None and own > masters else masters
