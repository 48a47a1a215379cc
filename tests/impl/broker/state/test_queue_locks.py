"""Tests leases on queues. Source: docs/reference/protocol/groups.md, "Queue locks"."""

from hypothesis import given
from hypothesis import strategies as st

from mqproof.impl.broker.state.queue_locks import QueueLockTable
from mqproof.impl.remoting.bodies import MessageQueue

A, B = (MessageQueue("b", number, "T") for number in range(2))


def test_a_queue_is_locked_by_one_client_until_its_lease_ends() -> None:
    locks = QueueLockTable(lease_ms=60_000)
    assert locks.lock("G", "c1", [A, B], 0) == [A, B]
    assert locks.lock("G", "c2", [A], 60_000) == []
    assert locks.lock("G", "c2", [A], 60_001) == [A]
    assert locks.lock("G", "c1", [A, B], 60_002) == [B]


def test_renewing_restarts_the_lease() -> None:
    locks = QueueLockTable(lease_ms=60_000)
    locks.lock("G", "c1", [A], 0)
    assert locks.lock("G", "c1", [A], 50_000) == [A]
    assert locks.lock("G", "c2", [A], 100_000) == []


def test_groups_do_not_exclude_each_other() -> None:
    locks = QueueLockTable(lease_ms=60_000)
    locks.lock("G", "c1", [A], 0)
    assert locks.lock("H", "c2", [A], 0) == [A]


def test_only_the_holder_can_unlock_a_queue() -> None:
    locks = QueueLockTable(lease_ms=60_000)
    locks.lock("G", "c1", [A], 0)
    locks.unlock("G", "c2", [A])
    assert locks.lock("G", "c2", [A], 1) == []
    locks.unlock("G", "c1", [A, B])
    assert locks.lock("G", "c2", [A], 2) == [A]
    locks.unlock("unknown", "c1", [A])


def test_an_expired_lease_is_removed_and_a_group_without_leases_too() -> None:
    locks = QueueLockTable(lease_ms=60_000)
    locks.lock("G", "c1", [A], 0)
    locks.lock("G", "c1", [B], 1)
    locks.lock("H", "c1", [A], 0)
    locks.unlock("H", "c1", [A])
    locks.lock("I", "c1", [], 0)
    locks.drop_expired(60_000)
    assert locks.lock("G", "c2", [A, B], 60_000) == []
    assert list(locks._leases) == ["G"]
    locks.drop_expired(60_001)
    assert locks.lock("G", "c2", [A, B], 60_001) == [A]
    locks.drop_expired(120_002)
    assert not locks._leases


_steps = st.lists(
    st.tuples(st.sampled_from("lu"), st.sampled_from(["c1", "c2", "c3"]), st.integers(0, 90)), max_size=30
)


@given(_steps)
def test_two_clients_never_hold_the_lock_of_one_queue_within_a_lease(
    steps: list[tuple[str, str, int]],
) -> None:
    locks = QueueLockTable(lease_ms=60)
    now, holder, until = 0, None, -1
    for step, client, after in steps:
        now += after
        locks.drop_expired(now)
        if step == "u":
            locks.unlock("G", client, [A])
            holder = None if holder == client else holder
        elif locks.lock("G", client, [A], now):
            assert holder in (None, client) or until < now
            holder, until = client, now + 60
        else:
            assert holder not in (None, client)
            assert now <= until
