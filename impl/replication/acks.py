"""How far the slaves of one master are, as they say it themselves."""

from collections.abc import Hashable

from mqproof.impl.replication import rules


class Acks:
    """By connection: a slave has one. It counts from its first report on, and that acknowledges nothing."""

    def __init__(self) -> None:
        self.highest = 0
        """The highest position that any slave ever acknowledged."""
        self._positions: dict[Hashable, int] = {}

    @property
    def slaves(self) -> int:
        """How many follow now."""
        return len(self._positions)

    def joined(self, slave: Hashable) -> None:
        self._positions[slave] = 0

    def left(self, slave: Hashable) -> None:
        self._positions.pop(slave, None)

    def reported(self, slave: Hashable, position: int, end: int) -> None:
        """A slave has the log up to `position`; the master's ends at `end`."""
        self._positions[slave] = rules.acked_position(self._positions[slave], position, end)
        self.highest = rules.acked_position(self.highest, position, end)

    def reported_as_shipped(self, slave: Hashable, position: int) -> None:
        """The same as released masters take it: any report counts, whatever the master itself has."""
        self._positions[slave] = position
        self.highest = max(self.highest, position)

    def reached(self, slaves: int) -> int:
        """Up to where so many slaves have the log. Where one is enough it may have gone since."""
        if slaves == 1:
            return self.highest
        positions = sorted(self._positions.values(), reverse=True)
        return positions[slaves - 1] if slaves <= len(positions) else 0

    def positions(self) -> tuple[int, ...]:
        """Of those that follow now."""
        return tuple(self._positions.values())
