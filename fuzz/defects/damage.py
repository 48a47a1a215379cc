"""Mutants of a store that lack one check of durable bytes each, or the repair from a peer."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from mqproof.conformance.mutants.damage import anything, nothing, skip, without
from mqproof.conformance.mutants.replacement import injected
from mqproof.fuzz.defects.defect import Mutant
from mqproof.fuzz.defects.store import refuse_without_place
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.store import recovery
from mqproof.impl.store.entry_repair import EntryRepair, LostRecord
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import DISTRUST, Checkpoint, read_checkpoint
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue
from mqproof.impl.store.results import Recovery

_next_queue_offset = LedgerStore.next_queue_offset
_trust_checkpoint = recovery.trust_checkpoint


def _always(*_: object) -> bool:
    return True


def _never(*_: object) -> bool:
    return False


def _known_end_only(log: CommitLog, checkpoint: Checkpoint) -> None:
    """Trust the checkpoint without a look at the segments."""
    try:
        _trust_checkpoint(log, checkpoint)
    except StoreError:
        if checkpoint.queue_count is not None:
            log.known_end = checkpoint.queue_count.position


def _recover_to_damage(parts: recovery.Parts, abnormal: bool) -> Recovery:
    """End the log at a damaged record without a report, as if a crash had torn it."""
    unreported = (
        _mutant("", "", "", "files.commit_log:CommitLog._after_damage", nothing),
        _mutant("", "", "", "recovery:report_cut", nothing),
        _mutant("", "", "", "recovery:report_lost_end", nothing),
    )
    with ExitStack() as stack:
        for each in unreported:
            stack.enter_context(injected(each))
        return recovery.recover(parts, abnormal)


async def _leave_damaged(_repair: object) -> None:
    """Leave the damaged records as they are."""


def _restore_quietly(repair: EntryRepair, queue: ConsumeQueue | None, lost: LostRecord, data: bytes) -> bool:  # noqa: ARG001
    """Write the bytes of a peer without a check, a report or a metric."""
    repair._log.replace_record(lost.commit_offset, data)
    return True


def _open_any_ledger(store: LedgerStore) -> None:
    """Load the ledger without what the checkpoint knows of its begin."""
    count = read_checkpoint(store._runtime.disk, store._layout.checkpoint).queue_count
    store.node.ledger.durable_pos = count.position if count is not None and count != DISTRUST else 0
    store.node.recover()


def _last_queue_offset(store: LedgerStore, topic: str, queue_id: int) -> int:
    """Return the right offset, and the one before it if the store has damage."""
    return max(0, _next_queue_offset(store, topic, queue_id) - bool(store.damage))


def _of_cluster(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, "cluster-rot", breaks, f"mqproof.impl.{where}", wrong)


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, "store-rot", breaks, f"mqproof.impl.store.{where}", wrong)


MUTANTS: Final = (
    _mutant(
        "AnythingDelivered",
        "a read delivers whatever the queue entry points at",
        "NeverSilentlyWrong",
        "files.record:entry_problem",
        anything,
    ),
    _mutant(
        "BodyNotChecked",
        "a read does not compare the body with its CRC",
        "NeverSilentlyWrong",
        "files.record:entry_problem",
        without(record.OTHER_BODY),
    ),
    _mutant(
        "OtherRecordDelivered",
        "a read delivers a record of another queue or offset",
        "NeverSilentlyWrong",
        "files.record:entry_problem",
        without(record.OTHER_RECORD),
    ),
    _mutant(
        "ShapeNotChecked",
        "a read does not check the record's lengths, topic and text",
        "NeverSilentlyWrong",
        "files.record:entry_problem",
        without(record.OTHER_SHAPE),
    ),
    _mutant(
        "ViewedAsItIs",
        "a record is returned by its commit offset although its queue does not have it",
        "NeverSilentlyWrong",
        "base:Store._is_dispatched_as",
        _always,
    ),
    _mutant(
        "LossNotReported",
        "a damaged record is skipped without a report",
        "NeverSilentlyLost",
        "damage:DamageReport.add",
        nothing,
    ),
    _mutant(
        "EntryNotRepaired",
        "a damaged queue entry is skipped like an expired one",
        "NeverSilentlyLost",
        "entry_repair:EntryRepair.record",
        skip,
    ),
    _mutant(
        "TagCodeNotChecked",
        "a read with a filter does not compare the tag codes of entries with their records",
        "NeverSilentlyLost",
        "files.record:entry_problem",
        without(record.OTHER_TAGS),
    ),
    _mutant(
        "DamageEndsLog",
        "recovery ends the log at a damaged record without a report, although later ones were durable",
        "NeverSilentlyLost",
        "message_store:recover",
        _recover_to_damage,
    ),
    _mutant(
        "EndNotReported",
        "recovery takes a damaged record at the end of the log for a write that a crash interrupted",
        "NeverSilentlyLost",
        "recovery:report_lost_end",
        nothing,
    ),
    _mutant(
        "MissingSegmentAccepted",
        "a start does not notice that a segment of the durable log is missing",
        "NeverSilentlyLost",
        "recovery:trust_checkpoint",
        _known_end_only,
    ),
    _mutant(
        "LostOffsetUsedAgain",
        "recovery cuts the queue entry of a damaged record",
        "OffsetsNotReused",
        "recovery:points_into_damage",
        _never,
    ),
    _mutant(
        "DamageWithoutPlace",
        "the error for a segment of another size does not name it",
        "RefusedByName",
        "files.segments:SegmentedFile.load",
        refuse_without_place,
    ),
    Mutant(
        "SharedBodyNotChecked",
        "a broker with peers delivers a record without comparing the body with its CRC",
        "record-repair",
        "NeverSilentlyWrong",
        "mqproof.impl.store.files.record:entry_problem",
        without(record.OTHER_BODY),
    ),
    Mutant(
        "PeerNotAsked",
        "a broker leaves a damaged record as it is, although a peer has it",
        "record-repair",
        "DamageSettled",
        "mqproof.impl.replication.record_repair:RecordRepair.round",
        _leave_damaged,
    ),
    Mutant(
        "DamagedEndCompared",
        "a master lets a slave compare its log with a damaged record",
        "record-repair",
        "DamageSettled",
        "mqproof.impl.replication.feed:Feed._require_sound",
        nothing,
    ),
    Mutant(
        "RepairNotReported",
        "a repair from a peer is neither logged nor counted",
        "record-repair",
        "DamageSettled",
        "mqproof.impl.store.entry_repair:EntryRepair.restore",
        _restore_quietly,
    ),
    _of_cluster(
        "ClusterBodyNotChecked",
        "no broker of a cluster compares the body of a record with its CRC",
        "NeverSilentlyWrong",
        "store.files.record:entry_problem",
        without(record.OTHER_BODY),
    ),
    _of_cluster(
        "LedgerEndNotReported",
        "a member cuts the end of its ledger without a report",
        "NeverSilentlyLost",
        "dledger.ledger_store:report_lost_end",
        nothing,
    ),
    _of_cluster(
        "SharedOffsetUsedAgain",
        "a leader whose store has damage gives the next message the last one's offset",
        "OffsetsNotReused",
        "dledger.ledger_store:LedgerStore.next_queue_offset",
        _last_queue_offset,
    ),
    _of_cluster(
        "SharedDamageWithoutPlace",
        "the error for a segment of another size does not name it",
        "RefusedByName",
        "store.files.segments:SegmentedFile.load",
        refuse_without_place,
    ),
    _of_cluster(
        "RecordsLeftDamaged",
        "no broker asks its peers for a damaged record",
        "DamageSettled",
        "replication.record_repair:RecordRepair.round",
        _leave_damaged,
    ),
    _of_cluster(
        "LedgerBeginNotChecked",
        "a member does not notice that the first segment of its ledger is missing",
        "DamageSettled",
        "dledger.ledger_store:LedgerStore._open_log",
        _open_any_ledger,
    ),
)
