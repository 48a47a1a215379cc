"""Measures the decoding speed of a commit log, compared with `cat` of the same file in the same run.

Both use one process and one core; the file is in the cache for both.
"""

import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mqproof.impl.remoting.message import Message
from mqproof.impl.store.files import record
from mqproof.spark_audit.sources.store.commit_log import read_range
from mqproof.spark_audit.sources.store.ranges import cut
from mqproof.spark_audit.sources.stores import SPLIT_BYTES


@dataclass(frozen=True, slots=True)
class Decoded:
    mebibytes: float
    records: int
    cat_seconds: float
    decode_seconds: float


def measure(body_bytes: int, mebibytes: int = 64) -> Decoded:
    """Measure with records that have bodies of that size and a few properties."""
    with tempfile.TemporaryDirectory(prefix="mqproof-bench-") as folder:
        path = Path(folder) / f"{0:020d}"
        _write(path, body_bytes, mebibytes << 20)
        # The first pass warms up the cache, Arrow and numpy.
        _decode(path)
        begun = time.monotonic()
        with path.open("rb") as log:
            subprocess.run(["cat"], stdin=log, stdout=subprocess.DEVNULL, check=True)
        read = time.monotonic()
        records = _decode(path)
        decoded = time.monotonic()
        return Decoded(path.stat().st_size / 2**20, records, read - begun, decoded - read)


def _decode(path: Path) -> int:
    """Return the number of records."""
    return sum(batch.num_rows for part in cut(path, SPLIT_BYTES) for batch in read_range(part))


def _write(path: Path, body_bytes: int, size: int) -> None:
    body, at, number = bytes(range(256)) * (body_bytes // 256 + 1), 0, 0
    with path.open("wb") as log:
        while at < size:
            properties = {"UNIQ_KEY": f"{number:032d}", "KEYS": f"k{number}", "TAGS": "TagA", "WAIT": "true"}
            draft = record.encode(Message("orders", body[:body_bytes], properties, number % 16))
            record.place(draft, number // 16, at, 1_700_000_000_000 + number)
            at, number = at + log.write(draft), number + 1
