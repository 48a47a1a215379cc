"""Opens a store directory for reading (docs/reference/protocol/storing.md, "Store directory").

Files that do not belong there are recorded as problems and skipped. Nothing is repaired.
"""

from dataclasses import dataclass, field
from typing import Final

from mqproof.impl.dledger import ballot_file, entry_format
from mqproof.impl.dledger.changes import Ballot
from mqproof.impl.dledger.ledger_log import LedgerLog
from mqproof.impl.runtime.disk import Disk, File
from mqproof.impl.store.config import QUEUE_UNIT_BYTES
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import Checkpoint, read_checkpoint
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue, QueueKey
from mqproof.impl.store.files.index_file import HEADER_BYTES, Header, IndexFile, IndexShape, read_header
from mqproof.impl.store.files.layout import Layout
from mqproof.impl.store.files.segments import SegmentedFile

_SLOT_BYTES: Final = 4
_ENTRY_BYTES: Final = 20


@dataclass(frozen=True, slots=True)
class LedgerFiles:
    """The files that a member has beside its data, in `dledger-ID`."""

    disk: Disk
    directory: str
    index: SegmentedFile

    @property
    def ballot_path(self) -> str:
        return f"{self.directory}/currterm"

    def ballot(self) -> Ballot | None:
        """Return the term and vote; None when the file is missing. Raises StoreError, OSError."""
        return ballot_file.load(self.disk, self.ballot_path)


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
    """True when there is no abort file: the last exit was clean, and the store is not running."""
    ledger: LedgerFiles | None = None
    """Set for a member of a group; `log` is then its ledger."""
    problems: list[str] = field(default_factory=list)
    """One line for each file that does not belong where it is."""

    def path(self, full: str) -> str:
        """Return a path relative to the directory, as reports show it."""
        return full.removeprefix(f"{self.layout.directory}/")


def open_directory(disk: Disk, path: str, index_slots: int = IndexShape().slots) -> StoreDirectory:
    """Open a store directory, and find the ends of its log and queues by the sizes of their contents.

    Raises:
        StoreError: it is not a store.
        OSError: it cannot be read.
    """
    layout = Layout(path)
    problems: list[str] = []
    ledger = _ledger(disk, path, problems)
    if ledger is not None:
        log: CommitLog = LedgerLog(_segments(disk, f"{ledger.directory}/data", problems, spans_gaps=True))
    elif disk.is_directory(layout.commit_log):
        log = CommitLog(_segments(disk, layout.commit_log, problems, spans_gaps=True))
    else:
        raise StoreError(f"{path}: not a store, a directory with commitlog/ or dledger-ID/ expected")
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
        ledger=ledger,
        problems=problems,
    )
    _open_index(opened, index_slots)
    opened.problems = [opened.path(problem) for problem in problems]
    for queue in opened.queues.values():
        queue.end = _written_units(queue)
        queue.first = queue.find(log.begin)
    return opened


def _ledger(disk: Disk, path: str, problems: list[str]) -> LedgerFiles | None:
    """Return the files of the member whose store it is; None if it is not a member's store."""
    names = [name for name in disk.names(path) if name.startswith("dledger-")]
    if not names:
        return None
    if len(names) > 1:
        raise StoreError(f"{path}: the ledgers of {len(names)} members, one expected: {', '.join(names)}")
    directory = f"{path}/{names[0]}"
    if not disk.is_directory(f"{directory}/data"):
        raise StoreError(f"{directory}: not a ledger, a directory with data/ expected")
    return LedgerFiles(disk, directory, _segments(disk, f"{directory}/index", problems, spans_gaps=True))


def written_end(log: CommitLog) -> int:
    """Return the commit offset after the last record or entry.

    It is found by following the sizes of the records; nothing else of them is checked.
    """
    position = log.end = log.begin
    for start in reversed(log.segments.starts):
        if _size_at(log, start):
            position = start
            break
    while size := _size_at(log, position):
        position += size
    return position


def _size_at(log: CommitLog, position: int) -> int:
    """Return the size of the record or entry at a position; 0 if there is none that fits its segment."""
    front = log.read(position, 8)
    room = log.segments.segment_bytes - position % log.segments.segment_bytes
    if isinstance(log, LedgerLog):
        size = entry_format.peek(front)
        return size if 0 < size <= room else 0
    size, magic = record.peek(front)
    return size if magic in record.MAGICS and record.SIZE_MIN <= size <= room else 0


def _segments(disk: Disk, directory: str, problems: list[str], *, spans_gaps: bool) -> SegmentedFile:
    """Open the segments of a directory, which must all have the size of the first.

    Without `spans_gaps`, segments after a missing one are left out.
    """
    files: list[tuple[int, File]] = []
    names = disk.names(directory)
    for name in names:
        path = f"{directory}/{name}"
        if len(name) != 20 or not (name.isascii() and name.isdecimal()) or disk.is_directory(path):
            problems.append(f"{path}: not a segment, a name of 20 digits expected")
            continue
        file = disk.open(path)
        if file.size() == 0:
            if name != names[-1]:  # a crash may leave an empty new segment at the end
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
    """Return the end of a queue: after the last unit of which any byte was written."""
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
            continue  # a crash may leave an empty new file
        if rest or entries < 2:
            expected = f"no index file of {slots} slots has {size} bytes, give the number with --index-slots"
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
