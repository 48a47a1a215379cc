"""Mutants of a store that lack one check of durable bytes each, used to judge the suite damage.

`fuzz/defects/damage.py` injects the same defects.
"""

from collections.abc import Callable
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.store import recovery
from mqproof.impl.store.entry_repair import EntryRepair
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import Checkpoint
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue, Unit
from mqproof.impl.store.recovery import Parts

_entry_problem = record.entry_problem
_trust_checkpoint = recovery.trust_checkpoint


def without(*problems: str) -> Callable[..., str]:
    """Return `entry_problem` without the checks that give one of these problems."""

    def entry_problem(*arguments: Any) -> str:
        found = _entry_problem(*arguments)
        return "" if found in problems else found

    return entry_problem


def anything(data: bytes, *_: object) -> str:
    return "" if data else "nothing is there"


def nothing(*_: object, **__: object) -> None:
    pass


def skip(repair: EntryRepair, queue: ConsumeQueue, queue_offset: int, unit: Unit) -> tuple[Unit, bytes]:  # noqa: ARG001
    return unit, b""


def _nothing_durable(_log: CommitLog, checkpoint: Checkpoint) -> None:
    """Forget what the checkpoint says about the durable part of the log."""
    object.__setattr__(checkpoint, "queue_count", None)


def _missing_accepted(log: CommitLog, checkpoint: Checkpoint) -> None:
    try:
        _trust_checkpoint(log, checkpoint)
    except StoreError:
        _nothing_durable(log, checkpoint)


def _cut_damaged(parts: Parts, _start: int) -> int:
    """Cut the last entries of a queue if their records are damaged. Dispatch nothing."""
    for queue in parts.queues:
        end = queue.end
        while end > queue.begin and not recovery.points_at_its_record(queue, end - 1, parts.log):
            end -= 1
        queue.cut(end)
    return 0


def _without_file(log: CommitLog, checkpoint: Checkpoint) -> None:
    try:
        _trust_checkpoint(log, checkpoint)
    except StoreError:
        raise StoreError("the files are damaged") from None


async def _ask_nobody(_repair: object) -> None:
    """Leave the damaged records as they are."""


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, breaks, f"mqproof.impl.store.{where}", wrong)


MUTANTS: Final = by_name(
    _mutant(
        "served-as-it-is",
        "A read delivers whatever the queue entry points at.",
        "ROT-1",
        "files.record:entry_problem",
        anything,
    ),
    _mutant(
        "body-not-checked",
        "A read does not compare a body with its CRC.",
        "ROT-1",
        "files.record:entry_problem",
        without(record.OTHER_BODY),
    ),
    _mutant(
        "other-record-served",
        "A read delivers a record of another queue or offset.",
        "ROT-1",
        "files.record:entry_problem",
        without(record.OTHER_RECORD),
    ),
    _mutant(
        "loss-not-logged",
        "A damaged record is left out without a line in the log.",
        "ROT-2",
        "damage:DamageReport.add",
        nothing,
    ),
    _mutant(
        "entry-not-repaired",
        "A damaged queue entry is skipped like an expired one.",
        "ROT-2",
        "entry_repair:EntryRepair.record",
        skip,
    ),
    _mutant(
        "tag-code-not-checked",
        "A read with a filter does not compare the tag codes of entries with their records.",
        "ROT-2",
        "files.record:entry_problem",
        without(record.OTHER_TAGS),
    ),
    _mutant(
        "damage-ends-log",
        "A start ends the log at a damaged record, although later ones were durable.",
        "ROT-2",
        "recovery:trust_checkpoint",
        _nothing_durable,
    ),
    _mutant(
        "missing-segment-accepted",
        "A start does not notice that a segment of the durable log is missing.",
        "ROT-2",
        "recovery:trust_checkpoint",
        _missing_accepted,
    ),
    _mutant(
        "lost-offset-used-again",
        "A start cuts the queue entries of damaged records.",
        "ROT-3",
        "recovery:dispatch_again",
        _cut_damaged,
    ),
    _mutant(
        "refused-without-name",
        "The error for a missing segment does not name it.",
        "ROT-4",
        "recovery:trust_checkpoint",
        _without_file,
    ),
)

OF_PEERS: Final = by_name(
    Mutant(
        "peer-not-asked",
        "A broker leaves a damaged record as it is, although a peer has it.",
        "ROT-5",
        "mqproof.impl.replication.record_repair:RecordRepair.round",
        _ask_nobody,
    ),
)
