"""A topic that is deleted is gone for good, and one made anew begins at offset 0, whatever crash comes.

Method: step by step on a simulated disk; a crash at every single step. Source:
docs/reference/protocol/recovery.md, "Deleted topics".
"""

import itertools
import random
from dataclasses import replace

import pytest

from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, Step
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError
from tests.impl.store.site import SMALL, Site, bodies, message, now

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
    """Topics T, with messages in two queues, and U; T is deleted. All is durable."""
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
def test_a_topic_made_anew_begins_at_0_and_has_its_own_messages_only(end: str, flushed: bool) -> None:
    site = with_deleted_topic()
    site.append("new 0", "new 1")
    if flushed:
        site.flush()
    else:
        now(site.store.flush_log())  # of the queues nothing is durable
    for _ in range(2):
        reopen(site, end)
        assert (bodies(site.store), bodies(site.store, queue_id=1)) == (["new 0", "new 1"], [])
    (appended,) = site.append("new 2")
    assert appended.queue_offset == 2


def test_places_that_a_crash_took_back_are_used_anew() -> None:
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


def test_what_waits_for_its_flush_when_its_topic_is_deleted_is_not_seen() -> None:
    site = Site(SYNC)
    site.open()
    site.append("old 0")
    now(site.store.flush_log())
    site.append("old 1")  # not durable yet, so not seen
    site.store.delete_topic("T")
    site.append("new 0")
    now(site.store.flush_log())
    assert bodies(site.store) == ["new 0"]
    site.reopen_after_power_loss()
    assert bodies(site.store) == ["new 0"]


def test_a_crash_at_any_step_of_a_deletion_leaves_the_topic_or_nothing_of_it() -> None:
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


def test_a_deletion_that_cannot_be_written_down_changes_nothing() -> None:
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


def test_a_released_brokers_topic_made_anew_has_its_messages() -> None:
    """It tells nothing but by its queues: what the log has before a queue's first message is another's."""
    site = with_deleted_topic()
    site.append("new 0", "new 1")
    site.append("new other", queue_id=1)
    site.close()
    site.disk.remove("store/config/deletedTopics.json")
    site.disk.remove("store/checkpoint")  # theirs has no count, and may be too old for anything
    site.open()
    assert (bodies(site.store), bodies(site.store, queue_id=1)) == (["new 0", "new 1"], ["new other"])


def follow(master: Site, slave: Site, count: int) -> None:
    """The slave gets the next records of its master."""
    scanned = master.store._log.scan(slave.store.log_end)
    found = itertools.islice((stored for _, stored in scanned if stored is not None), count)
    slave.store.append_replicated(
        [(master.store.log_read(stored.commit_offset, stored.size), stored) for stored in found]
    )


def test_a_slave_follows_its_master_through_a_deletion() -> None:
    """Records are all that it gets: an offset 0 behind others says that the queue begins again."""
    master, slave = Site(), Site(directory="slave")
    master.open()
    slave.open()
    master.append("old 0", "old 1", "old 2")
    master.store.delete_topic("T")
    master.append("new 0")
    follow(master, slave, 2)
    follow(master, slave, 2)  # an old one and a new one at once
    assert bodies(slave.store) == ["new 0"]
    master.append("new 1")
    follow(master, slave, 1)
    assert bodies(slave.store) == ["new 0", "new 1"]
    slave.reopen_after_process_crash()
    assert bodies(slave.store) == ["new 0", "new 1"]


def follow_all(master: Site, slave: Site) -> None:
    """The slave gets what it lacks, and hears what was deleted."""
    follow(master, slave, 100)
    slave.store.adopt_deletions(master.store.deleted_topics)


def slave_of(master: Site, slave: Site | None = None) -> Site:
    """A slave, or the same in its next life."""
    slave = slave or Site(master.config, directory="slave")
    slave.made()
    slave.store.refusal = "it is a slave"
    slave.store.load()
    slave.store.begin()
    return slave


@pytest.mark.parametrize("known", [0, 2, 5])
def test_a_slave_forgets_what_its_master_deleted_however_much_of_it_is_still_to_come(known: int) -> None:
    """Late records get no entry; the topic made anew has its own messages only, in each queue."""
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
def test_a_slave_that_hears_late_of_a_deletion_keeps_the_new_topics_messages(mode: FlushMode) -> None:
    """Under SYNC_FLUSH they still wait for their flush."""
    master = Site(replace(SMALL, flush_mode=mode))
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1")
    master.append("other 0", queue_id=1)
    follow(master, slave, 3)
    now(slave.store.flush_log())
    master.store.delete_topic("T")
    master.append("new 0", "new 1")
    follow_all(master, slave)
    now(slave.store.flush_log())
    assert (bodies(slave.store), bodies(slave.store, queue_id=1)) == (["new 0", "new 1"], [])


def test_a_slave_that_recovers_both_topics_and_knows_of_no_deletion_shows_the_new_one() -> None:
    """The log survived a crash, the queues did not."""
    master = Site()
    master.open()
    slave = slave_of(master)
    master.append("old 0", "old 1", "old 2")
    master.store.delete_topic("T")
    master.append("new 0", "new 1")
    follow(master, slave, 5)
    now(slave.store.flush_log())
    slave.simulated_disk.lose_power()
    slave = slave_of(master, slave)
    assert bodies(slave.store) == ["new 0", "new 1"]
    master.append("new 2")
    for _ in range(2):
        follow_all(master, slave)
        assert bodies(slave.store) == ["new 0", "new 1", "new 2"]


@pytest.mark.parametrize("flushed", [True, False])
def test_what_of_a_slaves_log_a_crash_took_comes_again_and_stays_deleted(flushed: bool) -> None:
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


def test_a_master_that_lost_the_places_of_what_it_deleted_uses_them_anew_and_its_slave_shows_it() -> None:
    """Both lost power; the slave kept what it heard of the deletion."""
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
    slave.store.correct_deletions({})  # of a master that says nothing nothing is learned
    master.append("new 0", "new 1", "new 2", "new 3")
    for _ in range(2):
        follow_all(master, slave)
        assert bodies(slave.store) == ["new 0", "new 1", "new 2", "new 3"]
    assert not slave.store.awaits_deleted_records()
    slave.store.correct_deletions({"T": 0})  # what came stays deleted
    assert slave.store.deleted_topics == master.store.deleted_topics
    slave.flush()
    slave.close()
    assert not slave.store.failure


def test_a_queue_that_lacks_entries_makes_a_store_read_only_and_its_lock_is_released() -> None:
    master = Site(SYNC)
    master.open()
    slave = slave_of(master)
    master.append("0", "1")
    now(master.store.flush_log())
    follow(master, slave, 1)  # waits for its flush
    slave.store.correct_deletions({})
    slave.store.adopt_deletions({"T": slave.store.log_end})
    follow(master, slave, 1)
    slave.close()
    assert "read-only" in slave.store.failure
    with pytest.raises(StoreError, match="would leave a gap"):  # not that it is locked
        slave_of(master, slave)


def test_a_slaves_store_that_became_a_masters_uses_the_places_anew() -> None:
    """Its log ends before all came that its master deleted."""
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


def test_a_file_that_is_no_table_of_deleted_topics_is_one_clear_error() -> None:
    site = with_deleted_topic()
    site.close()
    file = site.disk.open("store/config/deletedTopics.json")
    file.write(0, b"[")
    with pytest.raises(StoreError, match=r"deletedTopics\.json: "):
        site.open()


def test_nothing_is_deleted_of_a_topic_that_never_had_a_message() -> None:
    site = Site()
    site.open()
    site.store.delete_topic("T")
    assert not site.disk.exists("store/config/deletedTopics.json")
    assert site.store.append(message("a")).queue_offset == 0
