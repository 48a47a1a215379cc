"""The positions that the slaves of one master have acknowledged."""

from collections.abc import Hashable

from mqproof.impl.replication import rules


class Acks:
    """The acknowledged position of each connected slave.

    A slave counts from its first report on; the first report acknowledges nothing.
    """

    def __init__(self) -> None:
        self.highest = 0
        """The highest position that any slave ever acknowledged."""
        self._positions: dict[Hashable, int] = {}

    @property
    def slaves(self) -> int:
        """The number of slaves that are connected now."""
        return len(self._positions)

    def joined(self, slave: Hashable) -> None:
        self._positions[slave] = 0

    def left(self, slave: Hashable) -> None:
        self._positions.pop(slave, None)

    def reported(self, slave: Hashable, position: int, end: int) -> None:
        """Record that a slave has the log up to `position`; the master's log ends at `end`."""
        self._positions[slave] = rules.acked_position(self._positions[slave], position, end)
        self.highest = rules.acked_position(self.highest, position, end)

    def reported_as_shipped(self, slave: Hashable, position: int) -> None:
        """Record a report as released masters do: any position counts, even beyond the master's own end."""
        self._positions[slave] = position
        self.highest = max(self.highest, position)

    def reached(self, slaves: int) -> int:
        """Return the position up to which at least `slaves` slaves have the log.

        For one slave this is the highest position ever acknowledged, even if that slave has disconnected
        since.
        """
        if slaves == 1:
            return self.highest
        positions = sorted(self._positions.values(), reverse=True)
        return positions[slaves - 1] if slaves <= len(positions) else 0

    def positions(self) -> tuple[int, ...]:
        """The acknowledged positions of the slaves that are connected now."""
        return tuple(self._positions.values())
