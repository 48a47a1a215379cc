"""A store directory opened for reading (docs/protocol.md, "Store directory").

Whatever does not belong there is noted as a problem and left out; nothing is repaired.
"""

from dataclasses import dataclass, field
from typing import Final

from impl.runtime.disk import Disk, File
from impl.store import record
from impl.store.checkpoint import Checkpoint, read_checkpoint
from impl.store.commit_log import CommitLog
from impl.store.config import QUEUE_UNIT_BYTES
from impl.store.consume_queue import ConsumeQueue, QueueKey
from impl.store.errors import StoreError
from impl.store.index_file import HEADER_BYTES, Header, IndexFile, IndexShape, read_header
from impl.store.layout import Layout
from impl.store.segments import SegmentedFile

_SLOT_BYTES: Final = 4
_ENTRY_BYTES: Final = 20


@dataclass(slots=True)
class StoreDirectory:
    layout: Layout
    disk: Disk
    log: CommitLog
    queues: dict[QueueKey, ConsumeQueue]
    index: list[IndexFile]
    shape: IndexShape
    checkpoint: Checkpoint | None
    is_clean: bool
    """No abort file: the last exit was clean, and the store does not run."""
    problems: list[str] = field(default_factory=list)
    """One line for each file that does not belong where it is."""

    def path(self, full: str) -> str:
        """A path as it is told: from the directory on."""
        return full.removeprefix(f"{self.layout.directory}/")


def open_directory(disk: Disk, path: str, index_slots: int = IndexShape().slots) -> StoreDirectory:
    """Open what is there; the ends of log and queues are still to be found.

    Raises:
        StoreError: it is no store. OSError: it cannot be read.
    """
    layout = Layout(path)
    if not disk.is_directory(layout.commit_log):
        raise StoreError(f"{path}: not a store, a directory with commitlog/ expected")
    problems: list[str] = []
    log = CommitLog(_segments(disk, layout.commit_log, problems, spans_gaps=True))
    log.end = written_end(log)
    opened = StoreDirectory(
        layout,
        disk,
        log,
        _queues(disk, layout.consume_queues, problems),
        [],
        IndexShape(),
        read_checkpoint(disk, layout.checkpoint) if disk.exists(layout.checkpoint) else None,
        is_clean=not disk.exists(layout.abort),
        problems=problems,
    )
    _open_index(opened, index_slots)
    opened.problems = [opened.path(problem) for problem in problems]
    for queue in opened.queues.values():
        queue.end = _written_units(queue)
        queue.first = queue.find(log.begin)
    return opened


def written_end(log: CommitLog) -> int:
    """The commit offset behind the last record, as far as their sizes lead; nothing else is looked at."""
    position = log.end = log.begin
    for start in reversed(log.segments.starts):
        if record.peek(log.read(start, 8))[1] in record.MAGICS:
            position = start
            break
    while True:
        size, magic = record.peek(log.read(position, 8))
        room = log.segments.segment_bytes - position % log.segments.segment_bytes
        if magic not in record.MAGICS or not record.SIZE_MIN <= size <= room:
            return position
        position += size


def _segments(disk: Disk, directory: str, problems: list[str], *, spans_gaps: bool) -> SegmentedFile:
    """The segments of a directory, all of the size of the first; without `spans_gaps` those behind a missing
    one are left out."""
    files: list[tuple[int, File]] = []
    names = disk.names(directory)
    for name in names:
        path = f"{directory}/{name}"
        if len(name) != 20 or not (name.isascii() and name.isdecimal()) or disk.is_directory(path):
            problems.append(f"{path}: not a segment, a name of 20 digits expected")
            continue
        file = disk.open(path)
        if file.size() == 0:
            if name != names[-1]:  # the last one is what a crash may leave of a new segment
                problems.append(f"{path}: empty")
            continue
        files.append((int(name), file))
    segment_bytes = files[0][1].size() if files else 1
    segments = SegmentedFile(disk, directory, segment_bytes)
    for start, file in files:
        if file.size() != segment_bytes:
            problems.append(f"{file.path}: {file.size()} bytes, {segment_bytes} expected as of the first")
        elif start % segment_bytes:
            problems.append(f"{file.path}: not a multiple of the segment size {segment_bytes}")
        else:
            if segments.starts and start != segments.capacity_end:
                problems.append(f"{file.path}: the segment before it is missing")
                if not spans_gaps:
                    break
            segments.adopt(start, file)
    return segments


def _queues(disk: Disk, directory: str, problems: list[str]) -> dict[QueueKey, ConsumeQueue]:
    found = {}
    for topic in disk.names(directory):
        if not disk.is_directory(f"{directory}/{topic}"):
            problems.append(f"{directory}/{topic}: not a directory, one for each topic expected")
            continue
        for name in disk.names(f"{directory}/{topic}"):
            path = f"{directory}/{topic}/{name}"
            if not (name.isascii() and name.isdecimal()) or not disk.is_directory(path):
                problems.append(f"{path}: not a queue, a directory named by its number expected")
                continue
            key = (topic, int(name))
            found[key] = ConsumeQueue(key, _segments(disk, path, problems, spans_gaps=False))
            if found[key].segments.segment_bytes % QUEUE_UNIT_BYTES and found[key].segments.starts:
                problems.append(f"{path}: segments are not a multiple of {QUEUE_UNIT_BYTES} bytes")
                del found[key]
    return found


def _written_units(queue: ConsumeQueue) -> int:
    """The end of a queue: behind the last unit of which anything was written."""
    segments = queue.segments
    for start in reversed(segments.starts):
        data = segments.read(start, segments.segment_bytes).rstrip(b"\0")
        if data:
            return (start + len(data) + QUEUE_UNIT_BYTES - 1) // QUEUE_UNIT_BYTES
    return queue.begin


def _open_index(opened: StoreDirectory, slots: int) -> None:
    disk, directory = opened.disk, opened.layout.index
    for name in disk.names(directory):
        path = f"{directory}/{name}"
        if len(name) != 17 or not (name.isascii() and name.isdecimal()) or disk.is_directory(path):
            opened.problems.append(f"{path}: not an index file, a name of 17 digits expected")
            continue
        file = disk.open(path)
        size = file.size()
        entries, rest = divmod(size - HEADER_BYTES - slots * _SLOT_BYTES, _ENTRY_BYTES)
        if size == 0:
            continue  # what a crash may leave of a new file
        if rest or entries < 2:
            expected = (
                f"no index file of {slots} slots has {size} bytes; --index-slots tells how many there are"
            )
            opened.problems.append(f"{path}: {expected}")
            continue
        shape = IndexShape(slots, entries)
        if opened.index and shape != opened.shape:
            opened.problems.append(
                f"{path}: {size} bytes, {opened.shape.file_bytes} expected as of the first"
            )
            continue
        opened.shape = shape
        header = read_header(file, shape) or Header(entry_next=0)
        opened.index.append(IndexFile(int(name), file, shape, header))
