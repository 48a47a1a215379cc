"""The files of a store, written byte by byte as a broker or a crash may have left them."""

import json
import struct
import zlib
from typing import Final

from mqproof.conformance.adapters.inspections.site import Site
from mqproof.conformance.adapters.inspections.store_damages import CHECKPOINT, INDEX, LOG, QUEUES, lose
from mqproof.conformance.adapters.inspections.written_records import Form, filler
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.impl.runtime.disk import Disk

Queue = tuple[str, int]
SEGMENT: Final = 1 << 12
ENTRIES: Final = 8
"""How many entries a file of a queue has."""
DELETIONS: Final = "/store/config/deletedTopics.json"
REBUILT: Final = (0, 0, (1 << 63) - 1)
"""The count of a checkpoint whose queues are being rebuilt."""
_ENTRY: Final = struct.Struct(">qiq")


class CraftedStore:
    """A log that begins at a place, entries of its queues, a checkpoint, and deletions."""

    def __init__(self, now_ms: int, begin: int = 0) -> None:
        self.begin = begin
        self.now_ms = now_ms
        self.log = bytearray()
        self.records: list[StoredRecord] = []
        self.entries: dict[Queue, dict[int, bytes]] = {}
        self.counted: tuple[int, int, int] | None = None
        """The two commit offsets and the number of entries in the checkpoint; None for no checkpoint."""
        self.times = (0, 0, 0)
        self.deleted: dict[str, int] = {}

    @property
    def end(self) -> int:
        return self.begin + len(self.log)

    def add(
        self, offset: int, queue: int = 0, topic: str = "t", *, body: bytes = b"", listed: bool = True,
        system: int = 0,
    ) -> StoredRecord:  # fmt: skip
        """Add a record; its body begins with its queue offset and its number in the log."""
        number = len(self.records)
        text = b"%d %d %s" % (offset, number, body)
        form = Form(topic, text, b"KEYS\x01k%d\x02" % number, queue, system=system)
        if len(form.written(0, 0, 0)) + 8 > self.left:
            self.log += filler(self.left)
        raw = form.written(offset, self.end, self.now_ms + number)
        if listed:
            self.list_entry(offset, self.end, len(raw), queue, topic)
        self.log += raw
        self.records += read_records(raw)
        return self.records[-1]

    def list_entry(self, offset: int, place: int, size: int, queue: int = 0, topic: str = "t") -> None:
        self.entries.setdefault((topic, queue), {})[offset] = _ENTRY.pack(place, size, 0)

    @property
    def left(self) -> int:
        """The bytes that are left in the segment."""
        return SEGMENT - self.end % SEGMENT

    def add_damage(self, size: int = 120, *, zeroed: bool = False, inside: bytes = b"") -> None:
        """Add bytes that are no record; with the size of one, unless they are zero bytes."""
        data = (size.to_bytes(4, "big") + b"\x5a" * 90 + inside).ljust(size, b"\x5a")
        self.log += bytes(size) if zeroed else data

    def count(self, entries: int, *, position: int | None = None, begin: int | None = None) -> None:
        """Let the checkpoint count the entries up to here, or up to a position."""
        self.counted = (
            self.begin if begin is None else begin, self.end if position is None else position, entries
        )  # fmt: skip

    def install(self, site: Site) -> None:
        """Write the files in place of those of the stopped broker; the topics stay."""
        disk = site.cluster.machines[MASTER].disk
        for folder in (LOG, QUEUES, INDEX):
            lose(disk, folder)
        for path in (CHECKPOINT, DELETIONS, f"{DELETIONS}.bak"):
            if disk.exists(path):
                disk.lose(path)
        process = disk.process()
        for at in range(0, len(self.log), SEGMENT):
            _write(process, f"{LOG}/{self.begin + at:020}", SEGMENT, bytes(self.log[at : at + SEGMENT]))
        for (topic, queue), entries in self.entries.items():
            self._install_queue(process, f"{QUEUES}/{topic}/{queue}", entries)
        if self.counted is not None or any(self.times):
            _write(process, CHECKPOINT, 4096, self._checkpoint())
        if self.deleted:
            text = json.dumps(self.deleted)
            sealed = f'{text[:-1]},"mqproofSeal":"1-{zlib.crc32(text.encode(), 1):08x}"}}'
            for path in (DELETIONS, f"{DELETIONS}.bak"):
                site.write_file(MASTER, path, sealed)

    def _install_queue(self, process: Disk, folder: str, entries: dict[int, bytes]) -> None:
        for first in range(min(entries) // ENTRIES * ENTRIES, max(entries) + 1, ENTRIES):
            data = b"".join(entries.get(at, bytes(20)) for at in range(first, first + ENTRIES))
            _write(process, f"{folder}/{first * 20:020}", ENTRIES * 20, data)

    def _checkpoint(self) -> bytes:
        data = struct.pack(">qqq", *self.times).ljust(1024, b"\0")
        if self.counted is None:
            return data
        data += struct.pack(">qqqqq", *self.counted, -1, -1) + bytes(40)
        return data + zlib.crc32(data).to_bytes(4, "big")


def _write(process: Disk, path: str, size: int, data: bytes) -> None:
    file = process.create(path, size)
    file.write(0, data)
    file.sync()
    process.sync_directory(path.rpartition("/")[0])
