"""Tests the target that crashes and damages a store: its invariants after each kind of damage."""

import base64

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.search import Engine
from mqproof.fuzz.store import judge as store_judge
from mqproof.fuzz.store.program import ASYNC, ENDING, HARMING, OPERATIONS, SYNC, program
from mqproof.fuzz.store.simulated_store import DIRECTORY, SimulatedStore
from mqproof.impl.runtime.clock import local_stamp
from mqproof.impl.runtime.simulated_loop import EPOCH_US
from mqproof.impl.store.config import FlushMode
from mqproof.spec.catalogue import catalogue

WRITTEN = ("append", 0, "append", 5, "flush_log", "dispatch", "flush_queues", "write_checkpoint")
UNSYNCED = ("append", 0, "append", 6)


def checked(data: bytes) -> dict[str, int]:
    """Run a program that breaks no invariant. Returns how often each invariant was tested."""
    target = targets.load("store-recovery")
    failure = judge(target, data)
    assert failure is None, failure
    return dict(+target.checked)


def test_the_seeds_break_no_invariant_and_test_every_one() -> None:
    target = targets.load("store-recovery")
    for seed in target.seeds():
        assert judge(target, seed) is None, seed.hex()
        assert len(seed) <= target.input_bytes_max
    assert set(+target.checked) == set(target.invariants)


def test_a_damaged_store_time_does_not_name_an_index_file_that_the_next_start_refuses() -> None:
    found = base64.b64decode("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAdAQABhAFAQIEAAYQ")
    assert judge(targets.load("store-recovery"), found) is None


@pytest.mark.parametrize("name", [*ENDING, *HARMING])
def test_each_ending_is_followed_by_a_judged_recovery(name: str) -> None:
    counts = checked(program(ASYNC, *WRITTEN, *UNSYNCED, name, 3, 140, 8, 1, 2, 3))
    assert counts


def test_durable_records_must_survive_a_power_loss() -> None:
    assert checked(program(SYNC, *WRITTEN, *UNSYNCED, "lose_power"))["SyncAckedDurable"] == 1
    assert "SyncAckedDurable" not in checked(program(SYNC, *UNSYNCED, "lose_power"))


def test_appended_records_must_survive_a_process_crash() -> None:
    assert checked(program(ASYNC, *UNSYNCED, "crash_process"))["AsyncAckedSurvivesProcessCrash"] == 1


def test_a_torn_record_tests_the_prefix_invariant() -> None:
    torn = program(ASYNC, "append", 0, "flush_log", "append", 0, "crash_machine", b"\x83" * 8)
    assert checked(torn)["RecoveredPrefix"] >= 1


def test_each_invariant_of_the_catalogue_has_its_function() -> None:
    known = {invariant.name: invariant for invariant in catalogue().values()}
    checked_here = [name for name in targets.load("store-recovery").invariants if name in known]
    assert checked_here
    for name in checked_here:
        check = getattr(store_judge, known[name].snake_name)
        assert store_judge.AFTER_A_CRASH[name] is check


def test_any_bytes_are_a_program() -> None:
    checked(b"")
    checked(bytes(160))
    checked(bytes(range(160)))


def test_the_numbers_of_operations_do_not_change() -> None:
    """Saved findings and corpora are programs: append operations, never insert or reorder them."""
    assert list(OPERATIONS) == [
        "append",
        "flush_log",
        "dispatch",
        "flush_queues",
        "write_checkpoint",
        "wait",
        "flush_log_fails",
        "crash_next_recovery",
        "crash_process",
        "crash_machine",
        "lose_power",
        "exit_cleanly",
        "old_checkpoint",
        "no_checkpoint",
        "no_queue",
        "garbage_tail",
        "overwrite",
        "copy_bytes",
        "truncate",
        "lose_file",
        "foreign_file",
        "stale_tail",
        "no_queue_end",
        "spoil_record",
        "spoil_entry",
    ]


def test_a_failed_fsync_does_not_advance_the_durable_position() -> None:
    simulated = SimulatedStore(FlushMode.SYNC_FLUSH)
    simulated.append(("A", 0), 10)
    simulated.flush_log()
    durable = simulated.durable_end
    simulated.append(("A", 0), 10)
    simulated.flush_log_fails()
    assert simulated.durable_end == durable
    assert simulated.store.failure


def test_the_simulated_store_sees_the_files_of_the_real_one() -> None:
    simulated = SimulatedStore(FlushMode.SYNC_FLUSH)
    simulated.append(("B", 0), 10)
    simulated.flush_log()
    simulated.store.dispatch()
    assert simulated.files() == [
        f"{DIRECTORY}/abort",
        f"{DIRECTORY}/commitlog/00000000000000000000",
        f"{DIRECTORY}/consumequeue/B/0/00000000000000000000",
        f"{DIRECTORY}/index/{local_stamp(EPOCH_US // 1000)}",
    ]
    assert (simulated.read("commitlog/00000000000000000000") or b"").startswith(simulated.truth[0].data)
    assert simulated.read("checkpoint") is None


def test_a_hundred_programs_break_no_invariant() -> None:
    engine = Engine(targets.load("store-recovery"), "1")
    for _ in range(150):
        data, failure = engine.step()
        assert failure is None, f"{failure} for {data.hex()}"
    assert engine.features > 3000
