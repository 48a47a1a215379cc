"""The resets of offsets of which the broker has notified a group's members, who commit the new offsets.

See docs/reference/protocol/administration.md, "Administration of a broker".
"""

from collections.abc import Mapping

_Queue = tuple[str, int]


class PendingResets:
    """The requested offset of each queue until a member commits it. Only groups with members have any."""

    def __init__(self) -> None:
        self._requested: dict[str, dict[_Queue, int]] = {}

    def expect(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Record that the group's members will commit these offsets, by queue id."""
        of_group = self._requested.setdefault(group, {})
        of_group.update({(topic, queue_id): offset for queue_id, offset in offsets.items()})

    def explains(self, group: str, topic: str, queue_id: int, known: int, offset: int) -> bool:
        """Return whether a commit of the offset, after `known`, carries out a reset.

        A member may still commit its progress before it has the notification. So a reset is carried out by
        the first commit that goes back, or that has the requested offset.
        """
        of_group = self._requested.get(group, {})
        requested = of_group.get((topic, queue_id))
        if requested is None:
            return False
        is_carried_out = offset < known or offset == requested
        if is_carried_out or known < requested < offset:
            del of_group[topic, queue_id]
        return is_carried_out

    def drop(self, group: str) -> None:
        """Forget the resets of a group that has no members any more."""
        self._requested.pop(group, None)
