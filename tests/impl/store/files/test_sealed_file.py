"""Tests files with a seal and a backup: any single fault in one of the two is repaired from the other.

Source: docs/reference/protocol/storing.md, "Configuration files".
"""

import json
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.store.damage import DamageKind, DamageReport, Outcome
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.sealed_file import is_sealed, read_sealed, write_sealed

PATH = "config/topics.json"
BACKUP = f"{PATH}.bak"


def _read(disk: SimulatedDisk, damage: DamageReport | None = None) -> object:
    return read_sealed(disk, PATH, json.loads, damage)


def _written(*contents: object) -> SimulatedDisk:
    disk = SimulatedDisk()
    for content in contents:
        write_sealed(disk, PATH, json.dumps(content).encode())
    return disk


@pytest.mark.parametrize("content", [{}, {"a": 1}, {"a": {"b": "}"}}])
def test_a_sealed_file_is_read_back_and_is_json_for_others(content: object) -> None:
    disk = _written(content)
    assert _read(disk) == content
    seal = json.loads(read_whole(disk, PATH)).pop("mqproofSeal")
    assert seal.startswith("1-")
    assert is_sealed(disk, PATH)


@pytest.mark.parametrize("path", [PATH, BACKUP])
def test_every_flipped_bit_is_repaired_from_the_other_file(path: str) -> None:
    size = len(read_whole(_written({"perm": 6}, {"perm": 4}), path))
    for bit in range(size * 8):
        disk = _written({"perm": 6}, {"perm": 4})
        sound = read_whole(disk, path)
        disk.damage(path, bit // 8, bytes([sound[bit // 8] ^ (1 << bit % 8)]))
        for damage in DamageReport(), None:
            found = _read(disk, damage)
            assert isinstance(found, dict)
            assert found["perm"] == 4, f"bit {bit}"


@pytest.mark.parametrize("path", [PATH, BACKUP])
@pytest.mark.parametrize("fault", ["lost", "empty", "zeroed", "half", "old"])
def test_a_lost_or_old_file_is_written_again_and_reported(path: str, fault: str) -> None:
    disk = _written({"perm": 6})
    old = read_whole(disk, path)
    write_sealed(disk, PATH, b'{"perm": 4}')
    sound = read_whole(disk, path)
    if fault == "lost":
        disk.lose(path)
    elif fault == "old":
        write_durably(disk, path, old)
    else:
        write_durably(disk, path, {"empty": b"", "zeroed": bytes(len(sound)), "half": sound[:9]}[fault])
    damage = DamageReport()
    assert _read(disk, damage) == {"perm": 4}
    assert read_whole(disk, path) == sound
    # A missing or older backup is also what a crash between the two writes leaves.
    is_reported = path == PATH or fault not in ("lost", "old")
    assert damage.counts.get((DamageKind.TABLE, Outcome.REPAIRED), 0) == is_reported


def test_a_file_without_a_usable_backup_is_refused_by_name() -> None:
    disk = SimulatedDisk()
    assert _read(disk) is None
    with pytest.raises(StoreError, match=f"{PATH}: it is missing; {BACKUP}: it is missing"):
        read_sealed(disk, PATH, json.loads, required=True)
    write_durably(disk, PATH, b"")
    with pytest.raises(StoreError, match=f"{PATH}: it is empty; {BACKUP}: it is missing"):
        _read(disk)


def test_the_file_of_a_released_broker_counts_whatever_the_backup_says() -> None:
    disk = _written({"perm": 6}, {"perm": 4})
    write_durably(disk, PATH, b'{"perm": 2}')
    assert _read(disk, DamageReport()) == {"perm": 2}


def test_a_write_waits_for_one_that_goes_on_in_another_thread() -> None:
    """The task of the first write may be cancelled; its thread may not overwrite the newer content."""
    disk, is_writing, may_write = _written({"n": 0}), threading.Event(), threading.Event()

    def pause(_: Step) -> None:
        disk.on_step = None
        is_writing.set()
        assert may_write.wait(10)

    disk.on_step = pause
    with ThreadPoolExecutor(2) as pool:
        writes = [pool.submit(write_sealed, disk, PATH, b'{"n": 1}')]
        assert is_writing.wait(10)
        writes.append(pool.submit(write_sealed, disk, PATH, b'{"n": 2}'))
        assert not writes[1].done()
        may_write.set()
    assert [write.result() for write in writes] == [None, None]
    assert _read(disk) == {"n": 2}


def test_the_log_names_the_file_and_its_problem(caplog: pytest.LogCaptureFixture) -> None:
    disk = _written({"perm": 6})
    write_durably(disk, PATH, b"")
    with caplog.at_level("WARNING"):
        assert _read(disk) == {"perm": 6}
        _read(disk, DamageReport())
        _read(disk, DamageReport())
    assert caplog.messages == [
        f"{PATH}: it is empty, its backup is used",
        f"damaged table at {PATH}: it is empty: repaired",
    ]


@pytest.mark.parametrize("left", [[PATH], [BACKUP], [PATH, BACKUP]])
def test_a_missing_backup_is_no_damage_and_a_missing_file_is(left: list[str]) -> None:
    disk = _written({"perm": 6})
    for path in {PATH, BACKUP} - set(left):
        disk.lose(path)
    damage = DamageReport()
    assert _read(disk, damage) == {"perm": 6}
    assert len(damage) == (left == [BACKUP])
    assert disk.exists(PATH)
    assert disk.exists(BACKUP)


def test_a_sound_pair_of_files_is_not_written() -> None:
    disk = _written({"perm": 6}, {"perm": 4})
    steps: list[Step] = []
    disk.on_step = steps.append
    assert _read(disk, DamageReport()) == {"perm": 4}
    assert steps == []


def test_a_backup_that_cannot_be_written_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    disk = _written({"perm": 6})

    def fail(step: Step) -> None:
        if step.path.startswith(BACKUP):
            raise OSError("no space")

    disk.on_step = fail
    write_sealed(disk, PATH, b'{"perm": 4}')
    assert caplog.messages == [f"{BACKUP} cannot be written, {PATH} has no backup: no space"]
    disk.on_step = None
    assert _read(disk) == {"perm": 4}


def test_a_file_without_a_seal_is_not_ours() -> None:
    disk = SimulatedDisk()
    assert not is_sealed(disk, PATH)
    write_durably(disk, PATH, b'{"perm": 2}')
    assert not is_sealed(disk, PATH)
    write_sealed(disk, PATH, b'{"perm": 2}')
    disk.lose(PATH)
    assert is_sealed(disk, PATH), "its backup is sealed"


@pytest.mark.parametrize(("before", "number", "begins"), [(0, 1, 1), (4294967295, 4294967296, 0)])
def test_the_checksum_of_a_seal_covers_its_number(before: int, number: int, begins: int) -> None:
    """The CRC-32 begins with the lower 32 bits of the number."""
    disk = SimulatedDisk()
    if before:
        write_durably(disk, PATH, b'{"mqproofSeal":"%d-00000000"}' % before)
    write_sealed(disk, PATH, b'{"a":1}\n')
    crc = zlib.crc32(b'{"a":1}', begins)
    assert read_whole(disk, PATH) == b'{"a":1,"mqproofSeal":"%d-%08x"}' % (number, crc)
    assert _read(disk) == {"a": 1}


@pytest.mark.parametrize(("blanks", "is_sealed_still"), [(36, True), (37, False)])
def test_a_seal_is_in_the_last_64_bytes(blanks: int, is_sealed_still: bool) -> None:
    disk = _written({"a": 1})
    disk.remove(BACKUP)
    write_durably(disk, PATH, read_whole(disk, PATH) + b" " * blanks)
    if is_sealed_still:
        assert _read(disk) == {"a": 1}
    else:
        with pytest.raises(StoreError, match="does not match its checksum"):
            _read(disk)


def test_a_required_file_must_exist() -> None:
    disk = SimulatedDisk()
    assert _read(disk) is None
    with pytest.raises(StoreError, match=rf"{PATH}: it is missing; {BACKUP}: it is missing"):
        read_sealed(disk, PATH, json.loads, required=True)


def test_a_file_that_is_older_than_its_backup_is_replaced_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = _written({"perm": 6})
    old = read_whole(disk, PATH)
    write_sealed(disk, PATH, b'{"perm": 4}')
    write_durably(disk, PATH, old)
    assert _read(disk) == _read(disk, DamageReport()) == _read(disk, DamageReport()) == {"perm": 4}
    assert caplog.messages == [
        f"{PATH}: it is older than its backup, its backup is used",
        f"damaged table at {PATH}: it is older than its backup: repaired",
    ]
    assert read_whole(disk, PATH) == read_whole(disk, BACKUP)


def test_a_backup_that_is_older_is_replaced_without_a_report() -> None:
    """A crash between the two writes leaves it."""
    disk = _written({"perm": 6})
    old = read_whole(disk, BACKUP)
    write_sealed(disk, PATH, b'{"perm": 4}')
    write_durably(disk, BACKUP, old)
    damage = DamageReport()
    assert _read(disk, damage) == {"perm": 4}
    assert len(damage) == 0
    assert read_whole(disk, PATH) == read_whole(disk, BACKUP)


@pytest.mark.parametrize(("left", "is_ours"), [([PATH], True), ([BACKUP], True), ([], False)])
def test_a_file_is_ours_if_it_or_its_backup_has_a_seal(left: list[str], is_ours: bool) -> None:
    disk = _written({"perm": 6})
    for path in {PATH, BACKUP} - set(left):
        disk.remove(path)
    assert is_sealed(disk, PATH) is is_ours
