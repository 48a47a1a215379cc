"""Tests store directories written by Apache's brokers 4.9.5 and 5.5.0, after a clean exit and after SIGKILL.

Method: each broker had small files (16 KiB segments, 30 entries, 50 slots and 199 keys). It received 120
messages with keys, 2 that were delayed by 1 s, and one delayed by 2 h, which still waits; before SIGKILL, 30
more. Files that we rebuild from the log must equal the broker's files byte for byte.
"""

import tarfile
from pathlib import Path

import pytest

from mqproof.impl.examine.directory import open_directory
from mqproof.impl.examine.verify import verify
from mqproof.impl.runtime.disk import ReadOnlyDisk, RealDisk
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.files import record
from mqproof.impl.store.message_store import MessageStore
from tests.impl.store.site import Site

GOLDEN = Path(__file__).parent / "golden"
CONFIG = StoreConfig(
    commit_log_segment_bytes=16384, consume_queue_segment_bytes=600, index_slots=50, index_entries=200
)
ALL = ["apache-4.9.5-clean", "apache-4.9.5-killed", "apache-5.5.0-clean", "apache-5.5.0-killed"]


@pytest.fixture(params=ALL)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of the directory; its name says which broker wrote it."""
    name: str = request.param
    directory = tmp_path / name
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return directory


def count(store: Path) -> int:
    return 125 if store.name.endswith("clean") else 155


def site(store: Path) -> Site:
    return Site(CONFIG, RealDisk(), str(store))


def bodies(opened: MessageStore) -> list[str]:
    """Return all messages of topic T, queue by queue."""
    found = []
    for queue_id in range(4):
        offset = opened.min_offset("T", queue_id)
        while records := opened.get("T", queue_id, offset).records:
            found += [record.decode(data).message.body.decode() for data in records]
            offset += len(records)
    return found


def test_verify_finds_no_damage(store: Path) -> None:
    verdict = verify(open_directory(ReadOnlyDisk(), str(store), CONFIG.index_slots))
    assert verdict.damages == []
    assert (verdict.records, verdict.entries) == (count(store), count(store))
    assert bool(verdict.notes) is not store.name.endswith("clean")


def test_the_store_opens_with_all_its_messages_and_accepts_more(store: Path) -> None:
    there = site(store)
    opened = there.open()
    assert there.recovery.abnormal is store.name.endswith("killed")
    assert (there.recovery.truncated_bytes, there.recovery.queue_entries_cut) == (0, 0)
    assert set(bodies(opened)) == {"hello", "soon", "world"} | ({"more"} if count(store) > 125 else set())
    assert len(bodies(opened)) == count(store) - 3
    assert len(opened.find("T", "k3", 64, 0, 1 << 62)) == 40
    before = opened.max_offset("T", 0)
    assert there.append("ours")[0].queue_offset == before
    there.close()
    assert verify(open_directory(ReadOnlyDisk(), str(store), CONFIG.index_slots)).damages == []


def test_queues_rebuilt_from_the_log_equal_the_recorded_ones_byte_for_byte(store: Path) -> None:
    written = _files(store / "consumequeue")
    for path in [*(store / "consumequeue").rglob("0*"), *(store / "index").iterdir(), store / "checkpoint"]:
        if path.is_file():
            path.unlink()
    there = site(store)
    there.open()
    there.close()
    assert _files(store / "consumequeue") == written
    assert written[f"{SCHEDULE_TOPIC}/17/{0:020d}"][:12] != bytes(12), "one message waits"


def test_an_index_rebuilt_from_the_log_equals_the_recorded_one_byte_for_byte(store: Path) -> None:
    if "5.5" in store.name:
        return  # that release indexes tags too
    written = list(_files(store / "index").values())
    for path in (store / "index").iterdir():
        path.unlink()
    there = site(store)
    there.open()
    there.close()
    assert list(_files(store / "index").values()) == written


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
