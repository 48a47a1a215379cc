"""Mutants of the two ends of a replication connection."""

from collections.abc import Callable
from typing import Any, Final

from mqproof.fuzz.defects.defect import Mutant
from mqproof.impl.replication import stream
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.follow import Follow
from mqproof.impl.replication.stream import HEADER_BYTES, Transfer, write_position

_asked = Feed._asked


def _take_any(*_: object) -> bool:
    return True


def _take_header_early(buffer: bytearray) -> Transfer | None:
    if len(buffer) == HEADER_BYTES and buffer[-1]:
        buffer.clear()
        return None
    return stream.read_transfer(buffer)


def _report_ahead(follow: Follow) -> bytes:
    return write_position(follow._log.log_end + len(follow._pending))


def _count_the_first(feed: Feed, position: int) -> None:
    _asked(feed, position)
    feed._acks.reported(feed, position, feed._log.log_end)


def _count_any(feed: Feed, position: int) -> None:
    feed._acks.reported_as_shipped(feed, position)


def _read_any(buffer: bytearray) -> int | None:
    if len(buffer) < 8:
        return None
    position = int.from_bytes(buffer[:8], "big", signed=True)
    del buffer[:8]
    return position


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, "ha-stream", breaks, f"mqproof.impl.{where}", wrong)


MUTANTS: Final = (
    _mutant(
        "AnyLastRecordAgrees",
        "a slave follows a master whose log diverges from its own",
        "SlaveIsPrefix",
        "replication.rules:agrees",
        _take_any,
    ),
    _mutant(
        "DamagedBodyReplicated",
        "a slave keeps a record whose body is damaged",
        "KeepsWholeRecords",
        "store.files.record:body_is_whole",
        _take_any,
    ),
    _mutant(
        "RecordOfAnotherPlace",
        "a slave keeps a record that names another position",
        "KeepsWholeRecords",
        "store.files.record:stands_where_it_says",
        _take_any,
    ),
    _mutant(
        "ReportedAhead",
        "a slave reports a record that is not complete yet",
        "ReportsWhatItHas",
        "replication.follow:Follow.report",
        _report_ahead,
    ),
    _mutant(
        "FirstPositionCounts",
        "a master treats the first request of a slave as an acknowledgement",
        "AcknowledgesWhatIsSaid",
        "replication.feed:Feed._asked",
        _count_the_first,
    ),
    _mutant(
        "AnyReportCounts",
        "a master counts an acknowledgement beyond the end of its log",
        "AcknowledgesWhatIsSaid",
        "replication.feed:Feed._acknowledged",
        _count_any,
    ),
    _mutant(
        "AnyPositionRead",
        "a master accepts negative positions",
        "AcknowledgesWhatIsSaid",
        "replication.feed:read_position",
        _read_any,
    ),
    _mutant(
        "HeaderTakenEarly",
        "a slave drops a header that arrives without its body",
        "ChunkingIrrelevant",
        "replication.follow:read_transfer",
        _take_header_early,
    ),
)
