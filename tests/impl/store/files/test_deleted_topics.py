"""Tests that a deleted topic stays deleted, and that a recreated one begins at offset 0, despite crashes.

Method: step by step on a simulated disk, with a crash at every step. Source:
docs/reference/protocol/recovery.md, "Deleted topics".
"""

import itertools
import random
from dataclasses import replace

import pytest

from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, Step
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError
from tests.impl.store.site import SMALL, Site, bodies, message

SYNC = replace(SMALL, flush_mode=FlushMode.SYNC_FLUSH)
ENDS = ["clean", "process", "power"]


def reopen(site: Site, end: str) -> None:
    if end == "clean":
        site.close()
        site.open()
    elif end == "process":
        site.reopen_after_process_crash()
    else:
        site.reopen_after_power_loss()


def with_deleted_topic(before: int = 7) -> Site:
    """Write topics T, with messages in two queues, and U; delete T. All of it is durable."""
    site = Site()
    site.open()
    site.append(*(f"old {number}" for number in range(before)))
    site.append("other", queue_id=1)
    site.append("stays", topic="U")
    site.flush()
    site.store.delete_topic("T")
    return site


@pytest.mark.parametrize("end", ENDS)
def test_a_deleted_topic_stays_deleted(end: str) -> None:
    site = with_deleted_topic()
    for _ in range(2):
        assert bodies(site.store) == bodies(site.store, queue_id=1) == []
        assert site.store.max_offset("T", 0) == site.store.next_queue_offset("T", 0) == 0
        assert bodies(site.store, topic="U") == ["stays"]
        assert not site.disk.names("store/consumequeue/T")
        reopen(site, end)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("flushed", [True, False])
def test_a_recreated_topic_begins_at_0_and_has_only_its_own_messages(end: str, flushed: bool) -> None:
    site = with_deleted_topic()
    site.append("new 0", "new 1")
    if flushed:
        site.flush()
    else:
        result_of(site.store.flush_log())  # no data of the queues is durable
    for _ in range(2):
        reopen(site, end)
        assert (bodies(site.store), bodies(site.store, queue_id=1)) == (["new 0", "new 1"], [])
    (appended,) = site.append("new 2")
    assert appended.queue_offset == 2


def test_positions_that_a_crash_removed_are_used_again() -> None:
    site = Site()
    site.open()
    site.append("lost", "lost too")
    site.store.delete_topic("T")
    site.reopen_after_power_loss()
    assert site.store.log_end == 0
    site.append("new")
    site.flush()
    site.reopen_after_power_loss()
    assert bodies(site.store) == ["new"]


def test_a_message_that_waits_for_its_flush_when_its_topic_is_deleted_is_not_visible() -> None:
    site = Site(SYNC)
    site.open()
    site.append("old 0")
    result_of(site.store.flush_log())
    site.append("old 1")  # not durable yet, so not visible
    site.store.delete_topic("T")
    site.append("new 0")
    result_of(site.store.flush_log())
    assert bodies(site.store) == ["new 0"]
    site.reopen_after_power_loss()
    assert bodies(site.store) == ["new 0"]


def test_a_crash_at_any_step_of_a_deletion_leaves_the_whole_topic_or_nothing() -> None:
    outcomes = set()
    for step in range(1, 60):
        site = Site()
        site.open()
        site.append("a", "b", "c", "d", "e")
        site.append("stays", topic="U")
        site.flush()
        left = step

        def crash(_: Step) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise SimulatedCrashError

        site.simulated_disk.on_step = crash
        try:
            site.store.delete_topic("T")
        except SimulatedCrashError:
            pass
        else:
            break
        site.simulated_disk.on_step = None
        site.simulated_disk.crash_os(random.Random(step))
        site.open()
        outcomes.add(tuple(bodies(site.store)))
        assert bodies(site.store, topic="U") == ["stays"]
        (appended,) = site.append("next")
        assert appended.queue_offset == len(bodies(site.store)) - 1
    else:
        pytest.fail("the deletion does not end")
    assert outcomes == {("a", "b", "c", "d", "e"), ()}


def test_a_deletion_that_cannot_be_written_changes_nothing() -> None:
    site = Site()
    site.open()
    site.append("a")

    def refuse(step: Step) -> None:
        if "deletedTopics" in step.path:
            raise OSError(5, "Input/output error", step.path)

    site.simulated_disk.on_step = refuse
    with pytest.raises(OSError, match="Input/output error"):
        site.store.delete_topic("T")
    assert bodies(site.store) == ["a"]
    assert site.store.writable


def test_a_topic_recreated_by_a_released_broker_has_its_messages() -> None:
    """A released broker has only its queues:

    log records before a queue's first message are of another topic.
    """
    site = with_deleted_topic()
    site.append("new 0", "new 1")
    site.append("new other", queue_id=1)
    site.close()
    site.disk.remove("store/config/deletedTopics.json")
    site.disk.remove("store/checkpoint")  # their checkpoint has no count, and may be arbitrarily old
    site.open()
    assert (bodies(site.store), bodies(site.store, queue_id=1)) == (["new 0", "new 1"], ["new other"])


def follow(master: Site, slave: Site, count: int) -> None:
    """Pass the next records of its master to the slave."""
    scanned = master.store._log.scan(slave.store.log_end)
    found = itertools.islice((stored for _, stored in scanned if stored is not None), count)
    slave.store.append_replicated(
        [(master.store.log_read(stored.commit_offset, stored.size), stored) for stored in found]
    )


def test_a_slave_follows_its_master_through_a_deletion() -> None:
    """The slave gets only records: an offset 0 after others means that the queue begins again."""
    master, slave = Site(), Site(directory="slave")
    master.open()
    slave.open()
    master.append("old 0", "old 1", "old 2")
    master.store.delete_topic("T")
    master.append("new 0")
    follow(master, slave, 2)
    follow(master, slave, 2)  # an old one and a new one in the same transfer
    assert bodies(slave.store) == ["new 0"]
    master.append("new 1")
    follow(master, slave, 1)
    assert bodies(slave.store) == ["new 0", "new 1"]
    slave.reopen_after_process_crash()
    assert bodies(slave.store) == ["new 0", "new 1"]


@pytest.mark.parametrize("end", ["process", "power"])
def test_a_slave_starts_again_although_the_counted_entries_of_an_old_topic_are_replaced(end: str) -> None:
    """It crashes after a record of the recreated topic, before it writes the next checkpoint."""
    master, slave = Site(), Site(directory="slave")
    master.open()
    slave.open()
    master.append("stays", topic="U")
    master.append("old 0", "old 1", "old 2")
    follow(master, slave, 4)
    slave.flush()
    master.store.delete_topic("T")
    master.append("new 0")
    follow(master, slave, 1)
    result_of(slave.store.flush_log())
    reopen(slave, end)
    assert bodies(slave.store) == ["new 0"]
    assert bodies(slave.store, topic="U") == ["stays"]


def follow_all(master: Site, slave: Site) -> None:
    """Pass the missing records and the deletions to the slave."""
    follow(master, slave, 100)
    slave.store.adopt_deletions(master.store.deleted_topics)


def slave_of(master: Site, slave: Site | None = None) -> Site:
    """Return a slave, or the same one after a restart."""
    slave = slave or Site(master.config, directory="slave")
    slave.made()
    slave.store.refusal = "it is a slave"
    slave.store.load()
    slave.store.begin()
    return slave


@pytest.mark.parametrize("known", [0, 2, 5])
def test_a_slave_deletes_a_topic_of_its_master_even_if_most_of_it_has_yet_to_arrive(known: int) -> None:
    """Late records get no entry; the recreated topic has only its own messages, in each queue."""
    master = Site()
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1", "old 2")
    master.append("other 0", "other 1", queue_id=1)
    master.append("stays", topic="U")
    follow(master, slave, known)
    master.store.delete_topic("T")
    assert slave.store.adopt_deletions(master.store.deleted_topics) == ["T"]
    assert slave.store.adopt_deletions(master.store.deleted_topics) == []
    master.append("new 0")
    for _ in range(2):
        follow_all(master, slave)
        assert (bodies(slave.store), bodies(slave.store, queue_id=1)) == (["new 0"], [])
        assert bodies(slave.store, topic="U") == ["stays"]
        assert not slave.store.failure


@pytest.mark.parametrize("mode", [FlushMode.ASYNC_FLUSH, FlushMode.SYNC_FLUSH])
def test_a_slave_that_learns_late_of_a_deletion_keeps_the_messages_of_the_new_topic(mode: FlushMode) -> None:
    """Under SYNC_FLUSH they still wait for their flush."""
    master = Site(replace(SMALL, flush_mode=mode))
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1")
    master.append("other 0", queue_id=1)
    follow(master, slave, 3)
    result_of(slave.store.flush_log())
    master.store.delete_topic("T")
    master.append("new 0", "new 1")
    follow_all(master, slave)
    result_of(slave.store.flush_log())
    assert (bodies(slave.store), bodies(slave.store, queue_id=1)) == (["new 0", "new 1"], [])


def test_a_slave_that_recovers_both_topics_without_the_deletion_shows_the_new_one() -> None:
    """The log survived a crash, the queues did not."""
    master = Site()
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1", "old 2")
    master.store.delete_topic("T")
    master.append("new 0", "new 1")
    follow(master, slave, 5)
    result_of(slave.store.flush_log())
    slave.simulated_disk.lose_power()
    slave = slave_of(master, slave)
    assert bodies(slave.store) == ["new 0", "new 1"]
    master.append("new 2")
    for _ in range(2):
        follow_all(master, slave)
        assert bodies(slave.store) == ["new 0", "new 1", "new 2"]


@pytest.mark.parametrize("flushed", [True, False])
def test_records_that_a_crash_took_from_a_slave_return_and_stay_deleted(flushed: bool) -> None:
    master = Site()
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1", "old 2")
    master.store.delete_topic("T")
    follow(master, slave, 1)
    slave.store.adopt_deletions(master.store.deleted_topics)
    follow(master, slave, 1)
    if flushed:
        slave.flush()
    slave.simulated_disk.lose_power()
    slave = slave_of(master, slave)
    follow(master, slave, 100)
    assert bodies(slave.store) == []
    master.append("new 0")
    follow(master, slave, 1)
    assert bodies(slave.store) == ["new 0"]
    assert not slave.store.failure


def test_a_master_that_lost_the_positions_of_a_deleted_topic_reuses_them_and_its_slave_shows_that() -> None:
    """Master and slave lost power, and the slave still knows the deletion."""
    master = Site()
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1")
    master.flush()
    follow(master, slave, 1)
    slave.flush()
    master.append("old 2", "old 3", "old 4")
    master.store.delete_topic("T")
    slave.store.adopt_deletions(master.store.deleted_topics)
    master.reopen_after_power_loss()
    slave.simulated_disk.lose_power()
    slave = slave_of(master, slave)
    assert slave.store.awaits_deleted_records()
    slave.store.correct_deletions(master.store.deleted_topics)
    slave.store.correct_deletions({})  # a master that reports nothing adds no deletion
    master.append("new 0", "new 1", "new 2", "new 3")
    for _ in range(2):
        follow_all(master, slave)
        assert bodies(slave.store) == ["new 0", "new 1", "new 2", "new 3"]
    assert not slave.store.awaits_deleted_records()
    slave.store.correct_deletions({"T": 0})  # the received records stay deleted
    assert slave.store.deleted_topics == master.store.deleted_topics
    slave.flush()
    slave.close()
    assert not slave.store.failure


def test_a_queue_with_missing_entries_makes_a_store_read_only_and_releases_its_lock() -> None:
    master = Site(SYNC)
    master.open()
    slave = slave_of(master)
    master.append("0", "1")
    result_of(master.store.flush_log())
    follow(master, slave, 1)  # waits for its flush
    slave.store.correct_deletions({})
    slave.store.adopt_deletions({"T": slave.store.log_end})
    follow(master, slave, 1)
    slave.close()
    assert "read-only" in slave.store.failure
    with pytest.raises(StoreError, match="would leave a gap"):  # and not that it is locked
        slave_of(master, slave)


def test_a_slaves_store_that_becomes_a_masters_reuses_the_positions() -> None:
    """The slave's log ends before all records arrived that its master deleted."""
    master = Site()
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1", "old 2")
    master.store.delete_topic("T")
    follow(master, slave, 1)
    slave.store.adopt_deletions(master.store.deleted_topics)
    slave.close()
    slave.open()
    slave.append("new 0")
    slave.flush()
    slave.reopen_after_power_loss()
    assert bodies(slave.store) == ["new 0"]


def test_an_invalid_table_of_deleted_topics_is_one_clear_error() -> None:
    site = with_deleted_topic()
    site.close()
    for name in ("deletedTopics.json", "deletedTopics.json.bak"):
        site.disk.open(f"store/config/{name}").write(0, b"[")
    with pytest.raises(StoreError, match=r"deletedTopics\.json: "):
        site.open()


def test_deleting_a_topic_without_messages_changes_nothing() -> None:
    site = Site()
    site.open()
    site.store.delete_topic("T")
    assert not site.disk.exists("store/config/deletedTopics.json")
    assert site.store.append(message("a")).queue_offset == 0
