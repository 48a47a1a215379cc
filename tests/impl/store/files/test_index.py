"""Tests the key index: its bytes, its searches, and its state after every kind of exit.

Source: docs/reference/protocol/storing.md, "Key index". Method: small files of 3 slots and 4 entries, so
that there are many chains
and files; the expected bytes are written by field.
"""

import struct
from dataclasses import replace

import pytest
from msgspec import structs

from mqproof.impl.remoting.message import SYS_TRANSACTION_PREPARED, SYS_TRANSACTION_ROLLBACK, Message
from mqproof.impl.runtime.clock import local_stamp
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import read_checkpoint, write_checkpoint
from mqproof.impl.store.files.index import Index, key_hash
from mqproof.impl.store.files.index_file import HEADER_BYTES, Header, IndexShape
from mqproof.impl.store.message_store import MessageStore
from tests.impl.store.site import Site, check_index, message

SHAPE = IndexShape(slots=3, entries=5)
FOREVER = (0, 1 << 62)
CHECKPOINT = "store/checkpoint"


def names(site: Site) -> list[str]:
    return site.disk.names("store/index")


def found(store: MessageStore, key: str, count: int = 64, times: tuple[int, int] = FOREVER) -> list[str]:
    """Return the bodies that a search finds."""
    return [record.decode(data).message.body.decode() for data in store.find("T", key, count, *times)]


# Bytes.


@pytest.mark.parametrize("key", ["key1", "", "schlüssel", "🔑", "k" * 300])
def test_a_key_is_hashed_with_its_topic_and_the_hash_is_never_negative(key: str) -> None:
    units = f"TopicTest#{key}".encode("utf-16-be")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    assert key_hash("TopicTest", key) == abs(value - (1 << 32) if value >> 31 else value)


def test_hashes_equal_those_of_java() -> None:
    assert key_hash("TopicTest", "key1") == 1655984460
    assert key_hash("T", "ajvakuzm") == 0, "its hash is -2^31, which has no absolute value in 32 bits"


def test_the_sizes_are_those_of_released_brokers() -> None:
    assert HEADER_BYTES == 40
    assert IndexShape().file_bytes == 420_000_040
    assert (IndexShape().slot_at(984460), IndexShape().entry_at(1)) == (40 + 4 * 984460, 20_000_060)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_two_index_files_have_the_expected_bytes(at_once: int) -> None:
    disk = SimulatedDisk()
    index = Index(disk, "index", SHAPE)
    index.load(None, 0, abnormal=False)
    start_ms = 1_700_000_000_500
    keys = ["a", "b", "c", "d", "e"]
    records = [("T", [key], 1000 * number, start_ms + 1700 * number) for number, key in enumerate(keys)]
    for number in range(0, len(keys), at_once):
        together = records[number : number + at_once]
        index.add(together, together[-1][2] + 100)
    index.take_unsynced().sync()
    hashes = [2639 * 31 + ord(key) for key in keys]
    assert [hashed % 3 for hashed in hashes] == [0, 1, 2, 0, 1]

    def header(*fields: int) -> bytes:
        return struct.pack(">qqqqii", *fields)

    def entry(number: int, seconds: int, previous: int) -> bytes:
        return struct.pack(">iqii", hashes[number], 1000 * number, seconds, previous)

    slots = struct.Struct(">iii")
    first = (
        header(start_ms, start_ms + 5100, 0, 3000, 3, 5)
        + slots.pack(4, 2, 3)
        + bytes(20)
        + entry(0, 0, 0)
        + entry(1, 1, 0)
        + entry(2, 3, 0)
        + entry(3, 5, 1)
    )
    # The seconds of the first entry count from the end of the previous file; then its own time is the begin.
    second = (
        header(start_ms + 6800, start_ms + 6800, 4000, 4000, 1, 2)
        + slots.pack(0, 1, 0)
        + bytes(20)
        + entry(4, 1, 0)
        + bytes(60)
    )
    stamps = [local_stamp(start_ms), local_stamp(start_ms + 6800)]
    assert disk.names("index") == [str(stamp) for stamp in stamps]
    assert [read_whole(disk, f"index/{stamp}") for stamp in stamps] == [first, second]


def test_a_key_that_occurs_twice_is_indexed_twice() -> None:
    site = Site()
    store = site.open()
    store.append(message("a", KEYS="k k"))
    store.dispatch()
    assert [len(list(file.entries())) for file in store._index or ()] == [3]
    assert found(store, "k") == ["a"], "and found once"


def test_transactions_are_indexed_unless_they_were_rolled_back() -> None:
    site = Site()
    store = site.open()
    store.append(structs.replace(message("p"), sys_flag=SYS_TRANSACTION_PREPARED))
    store.append(structs.replace(message("r"), sys_flag=SYS_TRANSACTION_ROLLBACK))
    store.dispatch()
    assert (found(store, "p"), found(store, "r")) == (["p"], [])


# Searching.


def _searched() -> Site:
    """Write ten messages, one per second, in several files; the even ones have the key "even"."""
    site = Site()
    store = site.open()
    for number in range(10):
        store.append(message(f"m{number}", KEYS="" if number % 2 else "x even"))
        store.dispatch()
        site.clock.advance_ms(1000)
    assert len(names(site)) > 2
    return site


def test_a_search_finds_the_newest_messages_and_returns_them_in_log_order() -> None:
    store = _searched().store
    assert found(store, "even") == ["m0", "m2", "m4", "m6", "m8"]
    assert found(store, "even", count=2) == ["m6", "m8"]
    assert found(store, "m3") == ["m3"]
    assert found(store, "odd") == []
    assert store.find("OTHER", "even", 10, *FOREVER) == []


@pytest.mark.parametrize("first", range(10))
def test_a_search_respects_its_time_range(first: int) -> None:
    site = _searched()
    start_ms = 1_700_000_000_000
    for last in range(first, 10):
        times = (start_ms + first * 1000, start_ms + last * 1000)
        expected = [f"m{number}" for number in range(first, last + 1) if number % 2 == 0]
        assert found(site.store, "even", times=times) == expected
        assert found(site.store, "even", times=(times[0] - 999, times[1] + 999)) == expected


def test_another_key_with_the_same_hash_is_not_found() -> None:
    site = Site()
    store = site.open()
    store.append(message("Aa"))
    store.append(message("BB"))
    store.dispatch()
    assert key_hash("T", "Aa") == key_hash("T", "BB")
    assert (found(store, "Aa"), found(store, "BB")) == (["Aa"], ["BB"])


def test_a_search_in_a_damaged_chain_ends() -> None:
    site = _searched()
    file = next(iter(site.store._index or ()))
    for number in range(1, 5):
        file.file.write(SHAPE.entry_at(number) + 16, struct.pack(">i", number))
    assert len(found(site.store, "even")) <= 5


def test_without_an_index_nothing_is_found_or_written() -> None:
    site = Site(replace(Site().config, index_enabled=False))
    store = site.open()
    site.append("a")
    site.flush()
    assert store.find("T", "a", 10, *FOREVER) == []
    assert names(site) == []


# Exits.


def _written(count: int = 11) -> Site:
    site = Site()
    site.open()
    for number in range(count):
        site.append(f"m{number}")
        site.clock.advance_ms(1000)
    return site


def _images(site: Site) -> dict[str, bytes]:
    return {name: read_whole(site.disk, f"store/index/{name}") for name in names(site)}


def test_a_clean_exit_leaves_the_index_unchanged() -> None:
    site = _written()
    site.close()
    before = _images(site)
    site.open()
    assert _images(site) == before
    check_index(site.store)
    site.append("more")
    check_index(site.store)


@pytest.mark.parametrize("lost", ["all", "newest", "oldest"])
def test_after_a_clean_exit_missing_files_are_rebuilt_where_that_is_noticed(lost: str) -> None:
    site = _written()
    site.close()
    gone = {"all": names(site), "newest": names(site)[-1:], "oldest": names(site)[:1]}[lost]
    before = _images(site)
    for name in gone:
        site.disk.remove(f"store/index/{name}")
    site.open()
    if lost == "oldest":
        assert len(names(site)) == len(before) - 1, "only verify can find this"
    else:
        check_index(site.store)
        assert _images(site).keys() == before.keys(), "the names come from the records"


def test_after_a_killed_process_the_index_has_the_same_bytes() -> None:
    site = _written()
    result_of(site.store.write_checkpoint())
    for number in range(3):
        site.append(f"later{number}")
    expected = _written()
    for number in range(3):
        expected.append(f"later{number}")
    expected.close()
    site.reopen_after_process_crash()
    site.close()
    assert _images(site) == _images(expected)


def test_after_a_power_loss_flushed_entries_are_kept_and_the_rest_is_indexed_again() -> None:
    site = _written()
    result_of(site.store.write_checkpoint())
    site.append("later")
    result_of(site.store.flush_log())
    site.reopen_after_power_loss()
    check_index(site.store)
    assert found(site.store, "later") == ["later"]


@pytest.mark.parametrize("clean", [True, False])
def test_with_a_released_brokers_checkpoint_only_full_flushed_files_survive_a_crash(clean: bool) -> None:
    site = _written()
    site.flush()
    if clean:
        site.close()
    full = [file.header.end_timestamp_ms for file in site.store._index or ()][:1]
    times = struct.unpack_from(">qq", read_whole(site.disk, CHECKPOINT))
    until_ms = full[0] if full else 0
    write_durably(site.disk, CHECKPOINT, struct.pack(">qqq", *times, until_ms).ljust(4096, b"\0"))
    site.simulated_disk.crash_process()
    site.open()
    check_index(site.store)
    assert site.recovery.abnormal is not clean


def test_a_released_broker_would_discard_the_file_that_a_killed_process_was_writing() -> None:
    """A released broker compares the file's last time with the checkpoint's time for the index.

    The rest of the file's header may be old.
    """
    site = _written(count=5)
    site.simulated_disk.crash_process()
    header = Header.decode(site.disk.open(f"store/index/{names(site)[-1]}").read(0, HEADER_BYTES))
    assert header.end_timestamp_ms > read_checkpoint(site.disk, CHECKPOINT).index_timestamp_ms
    assert header.entry_next == 2


def test_a_file_whose_header_was_never_written_is_rebuilt() -> None:
    """Brokers of 4.9 write the header when the file is full, so it may be old even after a clean exit."""
    site = _written(count=6)
    site.close()
    newest = names(site)[-1]
    site.disk.open(f"store/index/{newest}").write(0, bytes(HEADER_BYTES))
    site.disk.remove(CHECKPOINT)
    site.open()
    check_index(site.store)


def test_an_index_that_is_ahead_of_the_log_is_cut() -> None:
    site = _written()
    site.close()
    segment = site.disk.names("store/commitlog")[-1]
    site.disk.open(f"store/commitlog/{segment}").write(0, bytes(512))
    uncounted = replace(read_checkpoint(site.disk, CHECKPOINT), queue_count=None)
    write_checkpoint(site.disk, CHECKPOINT, uncounted)
    site.open()
    assert site.recovery.truncated_bytes == 0
    check_index(site.store)
    site.append("new")
    check_index(site.store)


def test_an_index_that_was_disabled_for_a_while_is_completed() -> None:
    site = _written()
    site.close()
    site.config = replace(site.config, index_enabled=False)
    site.open()
    site.append("unseen")
    site.close()
    site.config = replace(site.config, index_enabled=True)
    site.open()
    check_index(site.store)
    assert found(site.store, "unseen") == ["unseen"]


@pytest.mark.parametrize("keys", ["k1 k2 k3 k4", "k1 k2 Aa BB", "Aa BB Aa BB"])
def test_missing_keys_of_a_partly_indexed_record_are_added_after_a_crash(keys: str) -> None:
    """The last keys are in a new index file, which the crash removes. Aa and BB have one hash."""
    site = Site()
    store = site.open()
    store.append(message("a", KEYS=keys))
    store.dispatch()
    hashes = [entry.key_hash for file in store._index or () for entry in file.entries()]
    site.close()
    second = names(site)[1]
    site.disk.remove(f"store/index/{second}")
    site.disk.remove(CHECKPOINT)
    site.open()
    check_index(site.store)
    assert [entry.key_hash for file in site.store._index or () for entry in file.entries()] == hashes
    assert set(found(site.store, keys[-2:])) == {"a"}


@pytest.mark.parametrize(
    ("name", "size", "complaint"),
    [
        ("notes.txt", 10, "not an index file, a name of 17 digits expected"),
        ("n" * 17, 10, "not an index file, a name of 17 digits expected"),
        ("٠" * 17, 10, "not an index file, a name of 17 digits expected"),
        ("20231114000000000", 10, "10 bytes, index files of 152 expected"),
    ],
)
def test_unexpected_files_are_refused_by_name(name: str, size: int, complaint: str) -> None:
    site = _written()
    site.close()
    site.disk.create(f"store/index/{name}", size)
    with pytest.raises(StoreError, match=f"store/index/{name}: {complaint}"):
        site.open()


def test_an_empty_file_left_by_a_crash_is_removed() -> None:
    site = _written()
    site.close()
    site.disk.create("store/index/99991231235959999", 0)
    site.open()
    assert "99991231235959999" not in names(site)
    check_index(site.store)


def test_files_without_remaining_records_are_deleted_except_the_newest() -> None:
    site = _written()
    index = site.store._index
    assert index is not None
    ends = [file.header.end_offset for file in index]
    removals = [index.detach_before(offset) for offset in (ends[0], ends[0] + 1, 1 << 62)]
    assert [len(removal.files) for removal in removals] == [0, 1, len(ends) - 2]
    for removal in removals:
        removal.carry_out()
    assert len(names(site)) == 1


def test_the_checkpoint_has_the_state_of_the_index() -> None:
    site = _written(count=5)
    site.flush()
    state = read_checkpoint(site.disk, CHECKPOINT).index
    assert state is not None
    assert (state.position, state.name) == (site.store.log_end, int(names(site)[-1]))
    assert state.header.entry_next == 2
    assert read_checkpoint(site.disk, CHECKPOINT).index_timestamp_ms == 1_700_000_003_000


def test_the_index_becomes_durable_after_the_log_and_nothing_is_rebuilt() -> None:
    site = _written(count=6)
    result_of(site.store.write_checkpoint())
    before = _images(site)
    site.reopen_after_power_loss()
    assert _images(site) == before
    check_index(site.store)


def test_an_index_without_entries_is_reported_as_empty() -> None:
    site = Site()
    store = site.open()
    store.append(Message("T", b"x"))
    store.dispatch()
    site.flush()
    state = read_checkpoint(site.disk, CHECKPOINT).index
    assert state is not None
    assert (state.position, state.name, state.header) == (store.log_end, 0, Header())
    assert store.index_end == (0, 0)
