"""Single faults of durable bytes, one block of one file at a time, as in the CORDS study of storage.

A store is written, and part of it later than the rest, so that each block has an earlier content. Then one
block or file changes without the knowledge of the store: while it runs, after a clean exit, or after a kill.
A kill may come before a checkpoint counts the last part.
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final, Self

from mqproof.fuzz.store.damaged_files import BLOCK_BYTES, DiskFiles, Files
from mqproof.fuzz.store.simulated_store import DIRECTORY, QUEUES, SimulatedStore
from mqproof.impl.runtime.disk import parent
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.config import FlushMode


class Fault(StrEnum):
    """What happens to a block or to its file."""

    BIT_FLIP = "bit flip"
    ZEROED = "zeroed"
    GARBAGE = "garbage"
    TRUNCATED = "truncated"
    LOST_WRITE = "lost write"
    MISDIRECTED_WRITE = "misdirected write"
    FILE_MISSING = "file missing"


class Moment(StrEnum):
    """When the fault happens."""

    RUNNING = "while running"
    CLOSED = "after a clean exit"
    KILLED = "after a kill"
    UNCOUNTED = "after a kill, before a checkpoint"


POINT_BYTES: Final = 8
FAULTS: Final = tuple(Fault)
MOMENTS: Final = tuple(Moment)


@dataclass(frozen=True, slots=True)
class Point:
    """One fault. All numbers are taken modulo the number of choices, so that any numbers are a point."""

    moment: Moment
    file: int
    block: int
    fault: Fault
    detail: int
    """Chooses the bit, the garbage, or the other block."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the point of an input of 8 bytes; missing bytes are zero."""
        moment, file, block, fault = data[:4].ljust(4, b"\0")
        detail = int.from_bytes(data[4:8].ljust(4, b"\0"), "big")
        return cls(MOMENTS[moment % len(MOMENTS)], file, block, FAULTS[fault % len(FAULTS)], detail)

    def encode(self) -> bytes:
        """Return the input that decodes to this point."""
        front = (MOMENTS.index(self.moment), self.file % 256, self.block % 256, FAULTS.index(self.fault))
        return bytes(front) + self.detail.to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class Written:
    """A store that was written on a simulated disk."""

    simulated: SimulatedStore
    older: SimulatedDisk

    @property
    def files(self) -> DiskFiles:
        return DiskFiles(self.simulated.disk, self.older, DIRECTORY)


@cache
def _template(moment: Moment) -> Written:
    simulated = SimulatedStore(FlushMode.SYNC_FLUSH)
    _write(simulated, 14)
    simulated.store.delete_topic("C")
    older = simulated.disk.copy()
    _write(simulated, 9, is_counted=moment is not Moment.UNCOUNTED)
    if moment is Moment.CLOSED:
        simulated.stop()
    return Written(simulated, older)


def written(moment: Moment) -> Written:
    """Return a new store with its files as they are before a fault at that moment."""
    template = _template(moment)
    simulated = template.simulated.copy()
    if moment is Moment.RUNNING:
        simulated.load()
        simulated.store.begin()
    return Written(simulated, template.older)


def _write(simulated: SimulatedStore, count: int, *, is_counted: bool = True) -> None:
    for number in range(count):
        queue = ("C", 0) if number == 3 else QUEUES[number % len(QUEUES)]
        simulated.append(queue, (10, 60, 200)[number % 3])
        simulated.clock.advance_ms(400)
        if number % 4 == 3:
            simulated.flush_log()
            simulated.store.dispatch()
    simulated.flush_log()
    simulated.store.dispatch()
    simulated.flush_queues()
    if is_counted:
        simulated.write_checkpoint()
    simulated.truth = [each for each in simulated.truth if each.queue[0] != "C"]


def inject(point: Point, files: Files) -> str:
    """Do what the point says to the files; return the path of the file."""
    paths = files.paths()
    path = paths[point.file % len(paths)]
    content = files.content(path)
    at = point.block % max(1, -(-len(content) // BLOCK_BYTES)) * BLOCK_BYTES
    size = min(BLOCK_BYTES, len(content) - at)
    chance = random.Random(point.detail)
    match point.fault:
        case Fault.BIT_FLIP if size > 0:
            byte, bit = at + point.detail // 8 % size, point.detail % 8
            files.damage(path, byte, bytes([content[byte] ^ (1 << bit)]))
        case Fault.ZEROED:
            files.damage(path, at, bytes(size))
        case Fault.GARBAGE:
            files.damage(path, at, chance.randbytes(size))
        case Fault.TRUNCATED:
            files.truncate(path, at)
        case Fault.LOST_WRITE:
            _revert(files, path, at, size)
        case Fault.MISDIRECTED_WRITE:
            _misdirect(files, path, at, size, chance)
        case Fault.FILE_MISSING:
            files.lose(path)
        case _:
            pass  # an empty file has no block
    return path


def _revert(files: Files, path: str, at: int, size: int) -> None:
    """Undo the last write of a block. A file that is replaced as a whole gets its earlier content."""
    earlier = files.before.get(path)
    if earlier is None:
        files.damage(path, at, bytes(size))
    elif len(earlier) != len(files.content(path)) or path.endswith((".json", ".bak", "checkpoint")):
        files.replace(path, earlier)
    else:
        files.damage(path, at, earlier[at : at + size])


def _misdirect(files: Files, path: str, at: int, size: int, chance: random.Random) -> None:
    """Let the last write of a block of the folder go to this block; its own block has its old content."""
    near = [each for each in files.paths() if parent(each) == parent(path)]
    source = chance.choice(near)
    content = files.content(source)
    blocks = max(1, -(-len(content) // BLOCK_BYTES))
    source_at = chance.randrange(blocks) * BLOCK_BYTES
    block = content[source_at : source_at + BLOCK_BYTES]
    if (source, source_at) != (path, at):
        files.damage(path, at, block[:size])
        if not source.endswith((".json", ".bak", "checkpoint")):
            _revert(files, source, source_at, len(block))
