"""Tests stores with drawn content: our store holds, and defects that only such a store shows are reported."""

from contextlib import AbstractContextManager, nullcontext

import pytest

from mqproof.conformance.adapters.store_copies.drawn_stores import DrawnStore
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.mutants.answers import MUTANTS
from mqproof.conformance.mutants.replacement import injected
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store import recovery

_LOST_IN_TWO_FILES = 49
"""A store that loses the end of its log, with entries of one queue in two files."""


def _wrong(number: int, defect: AbstractContextManager[object] | None = None) -> list[str]:
    """Return what is wrong in the store with this number."""
    loop, disk = SimulatedLoop(), SimulatedDisk()
    watch = Watch(lambda: 0, is_exact=True)
    runtime = simulated(loop, SimulatedNetwork(), disk=disk)
    with expected_warnings("mqproof.impl"), defect or nullcontext():
        run_simulated(DrawnStore(disk, runtime, watch, number).examine(), loop)
    return [each.text for each in watch.wrong]


def test_a_drawn_store_survives_damage_and_expiry() -> None:
    assert [_wrong(number) for number in (0, 3, 6, _LOST_IN_TWO_FILES)] == [[], [], [], []]


@pytest.mark.parametrize(
    ("name", "number"),
    [("expired-files-kept", 0), ("unqueued-in-place-of-lost", 3), ("newer-table-replaced", 6)],
)
def test_a_defect_of_a_start_or_an_expiry_is_reported(name: str, number: int) -> None:
    assert _wrong(number, injected(MUTANTS[name]))


def test_every_lost_record_is_named_beyond_the_first_file_of_its_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = recovery._written
    monkeypatch.setattr(
        recovery,
        "_written",
        lambda queue, first, count: whole(queue, first, min(count, len(queue.units(first, count)))),
    )

    assert any("a lost record is not reported" in text for text in _wrong(_LOST_IN_TWO_FILES))


def test_an_exception_of_a_store_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "find_end", lambda *_: int("no"))

    assert any("ValueError" in text for text in _wrong(0))
