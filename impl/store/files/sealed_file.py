"""Small files that exist twice, each with a checksum: a table of the broker is in NAME and in NAME.bak.

The seal is the last field of the JSON object: a number that grows with each write, and the CRC-32 of the text
without the seal. RocketMQ ignores fields that it does not know. Its own files have no seal. See
docs/reference/protocol/storing.md, "Configuration files".
"""

import logging
import re
import zlib
from collections.abc import Callable
from typing import Final, TypeVar

from mqproof.impl.runtime.disk import ONE_AFTER_ANOTHER, Disk, read_whole, write_durably
from mqproof.impl.store.damage import Damage, DamageKind, DamageReport, Outcome
from mqproof.impl.store.errors import StoreError

T = TypeVar("T")

_SEAL: Final = re.compile(rb',?"mqproofSeal":"([0-9]{1,18})-([0-9a-f]{8})"\}\s*\Z')
_SEAL_BYTES_MAX: Final = 64

_log = logging.getLogger(__name__)


class _Candidate:
    """One of the two files. `number` is that of its seal; None if it has none."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self.number: int | None = None
        self.data = b""
        self.problem = "it is missing"
        if disk.exists(path):
            self.data = read_whole(disk, path)
            self.problem = "" if self.data.strip() else "it is empty"
        if (match := _SEAL.search(self.data[-_SEAL_BYTES_MAX:])) is not None:
            length = len(self.data) - len(self.data[-_SEAL_BYTES_MAX:]) + match.start()
            self.data = self.data[:length] + b"}"
            self.number = int(match[1])
            if _sum(self.number, self.data) != match[2]:
                self.problem = "its content does not match its checksum"


def write_sealed(disk: Disk, path: str, data: bytes) -> None:
    """Replace the file and its backup durably. `data` is one JSON object.

    A backup that cannot be written is logged. Raises OSError; then the file has its old or its new content.
    """
    content = data.rstrip()
    assert content.endswith(b"}"), f"a JSON object expected: {content[-20:]!r}"
    with ONE_AFTER_ANOTHER:
        _write(disk, path, content)


def _write(disk: Disk, path: str, content: bytes) -> None:
    number = 1 + max(_number(disk, path), _number(disk, f"{path}.bak"))
    comma = b"" if content[:-1].rstrip() == b"{" else b","
    seal = b'%s"mqproofSeal":"%d-%s"}' % (comma, number, _sum(number, content))
    write_durably(disk, path, content[:-1] + seal)
    try:
        write_durably(disk, f"{path}.bak", content[:-1] + seal)
    except OSError as error:
        _log.warning("%s.bak cannot be written, %s has no backup: %s", path, path, error)


def read_sealed(
    disk: Disk,
    path: str,
    parse: Callable[[bytes], T],
    damage: DamageReport | None = None,
    *,
    required: bool = False,
) -> T | None:
    """Return the parsed content; None if neither the file nor its backup exists and it is not `required`.

    The backup is used when the file is missing, empty, damaged or older. With a `damage` report this is
    reported, and the other file is written again. `parse` raises ValueError.

    Raises:
        StoreError: one of the two exists, but neither can be used. OSError: they cannot be read or written.
    """
    main, backup = (_Candidate(disk, each) for each in (path, f"{path}.bak"))
    values: list[tuple[_Candidate, T]] = []
    for each in (main, backup):
        if not each.problem:
            try:
                values.append((each, parse(each.data)))
            except ValueError as error:
                each.problem = str(error)
    if not values:
        if disk.exists(path) or disk.exists(backup.path) or required:
            raise StoreError(f"{path}: {main.problem}; {backup.path}: {backup.problem}")
        return None
    chosen, value = values[0]
    if len(values) == 2 and main.number is not None and (backup.number or 0) > main.number:
        main.problem = "it is older than its backup"
        chosen, value = values[1]
    if damage is not None:
        _restore(disk, main, backup, chosen, damage)
    elif chosen is backup:
        _log.warning("%s: %s, its backup is used", path, main.problem)
    return value


def is_sealed(disk: Disk, path: str) -> bool:
    """Return whether mqproof wrote the file or its backup."""
    return max(_number(disk, path), _number(disk, f"{path}.bak")) > 0


def _restore(
    disk: Disk, main: _Candidate, backup: _Candidate, chosen: _Candidate, damage: DamageReport
) -> None:
    other = backup if chosen is main else main
    if chosen is backup or (other.problem and disk.exists(other.path)):
        damage.add(Damage(DamageKind.TABLE, other.path, other.problem, Outcome.REPAIRED))
    if other.problem or other.number != chosen.number:
        write_durably(disk, other.path, read_whole(disk, chosen.path))


def _number(disk: Disk, path: str) -> int:
    if not disk.exists(path):
        return 0
    file = disk.open(path)
    try:
        end = file.read(max(0, file.size() - _SEAL_BYTES_MAX), _SEAL_BYTES_MAX)
    finally:
        file.close()
    match = _SEAL.search(end)
    return int(match[1]) if match else 0


def _sum(number: int, data: bytes) -> bytes:
    return b"%08x" % zlib.crc32(data, number & 0xFFFFFFFF)
