"""What servers leave after they stopped: no timer, and no open file."""

import asyncio

from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

_ARRIVED_S = 0.1
"""After this time, all packets that were sent have arrived."""
_CLOSING = "_SimulatedConnection.abort"
"""Ends a closed connection later, if its peer does not."""


async def nothing_left(loop: SimulatedLoop, *disks: SimulatedDisk) -> None:
    """Fail if a timer is set or a file is open after everything has stopped."""
    await asyncio.sleep(_ARRIVED_S)
    assert [timer for timer in loop.timers() if timer != _CLOSING] == []
    no_open_file(*disks)


def no_open_file(*disks: SimulatedDisk) -> None:
    assert [file.path for disk in disks for file in disk.opened] == []
