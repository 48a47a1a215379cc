"""Judges a store after a single fault: what consumers receive, what is reported, where new messages go.

There is one function per invariant, named as in the catalogue.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mqproof.fuzz.store.simulated_store import DIRECTORY, QUEUES, Appended, SimulatedStore
from mqproof.fuzz.store.single_fault import Moment, Point, inject, written
from mqproof.fuzz.target import Finding
from mqproof.impl.store.base import Store
from mqproof.impl.store.damage import Outcome
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.record import RecordError
from mqproof.impl.store.results import GetStatus

_READS_MAX: Final = 200


class FaultVerdict(StrEnum):
    """What a fault did. The first that applies counts."""

    REFUSED = "refused by name"
    REPORTED = "reported"
    REPAIRED = "repaired"
    UNCOVERED = "not covered by a checksum"
    NOT_FOUND = "not found by key"
    HARMLESS = "harmless"


@dataclass
class Seen:
    """What was observed after a fault, over all starts."""

    refused: str = ""
    reported: bool = False
    repaired: bool = False
    uncovered: bool = False
    not_found: bool = False
    lost: list[Appended] = field(default_factory=list)

    @property
    def verdict(self) -> FaultVerdict:
        if self.refused:
            return FaultVerdict.REFUSED
        if self.lost or self.reported:
            return FaultVerdict.REPORTED
        if self.repaired:
            return FaultVerdict.REPAIRED
        if self.uncovered:
            return FaultVerdict.UNCOVERED
        return FaultVerdict.NOT_FOUND if self.not_found else FaultVerdict.HARMLESS


def judge(point: Point) -> tuple[str, FaultVerdict]:
    """Return the file of a point, and what its fault did. Raises Finding when an invariant is violated."""
    store = written(point.moment)
    simulated, seen = store.simulated, Seen()
    tag_codes = {0} if point.detail % 2 else None  # all messages have this code, so both give the same
    path = inject(point, store.files)
    try:
        if point.moment is not Moment.RUNNING:
            simulated.load()
            simulated.store.begin()
        _observe(simulated, seen, tag_codes)
        if not simulated.store.failure:
            _flush(simulated)
        simulated.crash_process()
        simulated.load()
        simulated.store.begin()
        _observe(simulated, seen, tag_codes)
        if point.moment is not Moment.UNCOUNTED:  # a start may cut what no checkpoint counts
            offsets_not_reused(simulated)
    except StoreError as error:
        refused_by_name(str(error))
        seen.refused = str(error)
    return path, seen.verdict


def never_silently_wrong(each: Appended, data: bytes, seen: Seen) -> None:
    """Check that a delivered record is the stored one, in all that a checksum or a rule covers."""
    if data == each.data:
        return
    try:
        got, stored = record.decode(data), record.decode(each.data)
    except RecordError as error:
        raise Finding("NeverSilentlyWrong", f"no record is delivered for {_words(each)}: {error}") from None
    for name in ("topic", "queue_id", "body"):
        if getattr(got.message, name) != getattr(stored.message, name):
            raise Finding("NeverSilentlyWrong", f"another {name} is delivered for {_words(each)}")
    if (got.queue_offset, got.commit_offset) != (stored.queue_offset, stored.commit_offset):
        raise Finding("NeverSilentlyWrong", f"another offset is delivered for {_words(each)}")
    seen.uncovered = True


def never_silently_lost(lost: list[Appended], seen: Seen) -> None:
    """Check that the loss of a message was reported."""
    if lost and not seen.reported:
        raise Finding("NeverSilentlyLost", f"lost without a report: {', '.join(map(_words, lost))}")


def refused_by_name(error: str, directory: str = DIRECTORY) -> None:
    """Check that a refused start names a file of the store."""
    if f"{directory}/" not in error:
        raise Finding("RefusedByName", f"the error names no file: {error}")


def offsets_not_reused(simulated: SimulatedStore) -> None:
    """Check that a new message follows all earlier ones of its queue, so that each consumer receives it."""
    if simulated.store.failure:
        return
    for queue in QUEUES:
        count = sum(each.queue == queue for each in simulated.truth)
        simulated.append(queue, 10)
        new = simulated.truth.pop()
        simulated.flush_log()
        simulated.store.dispatch()
        got = simulated.store.get(*queue, count).records
        if new.queue_offset != count or got != (new.data,):
            text = f"{queue} had {count} messages, the new one has offset {new.queue_offset}"
            raise Finding("OffsetsNotReused", f"{text}, and {len(got)} are delivered at {count}")
        simulated.truth.append(new)


def _observe(simulated: SimulatedStore, seen: Seen, tag_codes: Collection[int] | None) -> None:
    """Read all queues as consumers do, and compare."""
    lost = observe(simulated.store, simulated.truth, seen, tag_codes)
    seen.repaired |= simulated.recovery is not None and simulated.recovery.redispatched > 0
    seen.lost += lost
    never_silently_lost(lost, seen)


def observe(
    store: Store, truth: Sequence[Appended], seen: Seen, tag_codes: Collection[int] | None = None
) -> list[Appended]:
    """Read all queues of a store as consumers do, and look up all messages; return those not delivered.

    Raises Finding if something wrong is delivered.
    """
    lost = []
    for queue in sorted({each.queue for each in truth}):
        stored = {each.queue_offset: each for each in truth if each.queue == queue}
        got = _consume(store, queue, tag_codes)
        for offset, data in got.items():
            if offset not in stored:
                raise Finding("NeverSilentlyWrong", f"{queue} delivers offset {offset}, which does not exist")
            never_silently_wrong(stored[offset], data, seen)
        lost += [each for offset, each in stored.items() if offset not in got]
    for each in truth:
        if (viewed := store.record_at(each.commit_offset)) is not None:
            never_silently_wrong(each, viewed, seen)
        found = store.find(each.queue[0], each.key, 2, 0, 1 << 62)
        seen.not_found |= not found
        for data in found:
            never_silently_wrong(_found_by_key(truth, each, data), data, seen)
    seen.reported |= any(outcome is not Outcome.REPAIRED for _, outcome in store.damage.counts)
    seen.repaired |= any(outcome is Outcome.REPAIRED for _, outcome in store.damage.counts)
    return lost


def _found_by_key(truth: Sequence[Appended], each: Appended, data: bytes) -> Appended:
    """Return the message that was found by the key of `each`: another one if its own key is altered.

    No checksum covers the keys.
    """
    try:
        at = record.decode(data).commit_offset
    except RecordError:
        return each
    return next((one for one in truth if one.commit_offset == at and one.data != data), each)


def _consume(store: Store, queue: tuple[str, int], tag_codes: Collection[int] | None) -> dict[int, bytes]:
    """Return what a consumer receives from offset 0 on, by queue offset."""
    got: dict[int, bytes] = {}
    offset = 0
    for _ in range(_READS_MAX):
        result = store.get(*queue, offset, tag_codes=tag_codes)
        for data in result.records:
            try:
                number = record.decode(data).queue_offset
            except RecordError as error:
                text = f"{queue} delivers no record from offset {offset} on: {error}"
                raise Finding("NeverSilentlyWrong", text) from None
            if number in got:
                raise Finding("NeverSilentlyWrong", f"{queue} delivers offset {number} twice")
            got[number] = data
        ends = (
            GetStatus.OFFSET_OVERFLOW_ONE,
            GetStatus.NO_MESSAGE_IN_QUEUE,
            GetStatus.NO_MATCHED_LOGIC_QUEUE,
        )
        if result.status in ends:
            return got
        if result.next_offset <= offset:
            raise Finding("NeverSilentlyLost", f"{queue} does not advance at {offset}: {result.status}")
        offset = result.next_offset
    raise Finding("NeverSilentlyLost", f"{queue} does not end")


def _flush(simulated: SimulatedStore) -> None:
    simulated.flush_log()
    simulated.flush_queues()
    simulated.write_checkpoint()


def _words(each: Appended) -> str:
    return f"{each.queue} {each.queue_offset} at {each.commit_offset}"
