"""Entries of the guarantee matrix on broker processes, which are killed, stopped or lose their disks."""

from pathlib import Path

import pytest

from mqproof.conformance.guarantee import on_processes
from mqproof.conformance.guarantee.on_processes import entries, live_through
from mqproof.conformance.subjects import guarantee_entry_processes
from mqproof.spec.guarantee import recorded
from mqproof.spec.guarantee.matrix import Cell, Outcome, Setup

VERDICTS = recorded.load()


def test_a_killed_master_and_its_slave_lose_nothing(tmp_path: Path) -> None:
    entry = Cell(Setup("ASYNC_FLUSH", "SYNC_MASTER", "async"), ("process",))
    lived = live_through(entry, VERDICTS[entry], 1, tmp_path / "cell")
    assert lived.failure == ""
    assert not (tmp_path / "cell").exists()


def test_a_lost_disk_loses_messages_and_an_unexpected_loss_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarantee_entry_processes, "_LOST_S", 0.0)
    entry = Cell(Setup("ASYNC_FLUSH", "none", "async"), ("disk",))
    lived = live_through(entry, Outcome.SAFE, 1, tmp_path / "cell")
    assert lived.worst is VERDICTS[entry] is Outcome.GONE
    assert lived.failure.startswith("seed 0 ends in gone")


def test_every_setup_is_run_with_each_fault_of_processes() -> None:
    chosen = entries(VERDICTS, {})
    assert len(chosen) == 24 * 4
    assert {entry.faults for entry in chosen} == {(fault,) for fault in guarantee_entry_processes.FAULTS}
    one = {"flush": "SYNC_FLUSH", "replication": "none", "producer": "sync", "fault": "disk"}
    assert entries(VERDICTS, one) == [Cell(Setup("SYNC_FLUSH", "none", "sync"), ("disk",))]
    assert entries(VERDICTS, {"fault": "power"}) == []


@pytest.mark.deep("starts and kills processes for each cell")
@pytest.mark.parametrize("entry", on_processes.entries(VERDICTS, {"producer": "sync"}), ids=str)
def test_no_cell_ends_worse_than_in_the_model(entry: Cell, tmp_path: Path) -> None:
    assert live_through(entry, VERDICTS[entry], 1, tmp_path / "cell").failure == ""
