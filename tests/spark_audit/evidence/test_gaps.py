"""Gaps of nodes: what their `gap` events say, and which findings a missing row may explain."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqproof.report.model import Verdict
from mqproof.spark_audit.audit import Audit, audit
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.evidence.gaps import GAPS_MAX, Gap, _merged, gaps_text
from mqproof.spark_audit.judging.outcome import violations
from mqproof.spark_audit.sources.embedded_read import read_embedded
from mqproof.spark_audit.sources.inputs import find_files
from mqproof.spec.events import NUMBER_MAX

Row = dict[str, Any]
BEGIN = 1_795_574_400_000_000
SECOND = 1_000_000
GAP_AT_S = 200


class Log:
    """The rows of a producer and of a consumer of one queue, one second apart."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.now_s = 0
        self._numbers: dict[str, int] = {}

    def emit(self, node: str, kind: str, attrs: Row | None = None, **columns: Any) -> None:
        number = self._numbers.get(node, 0)
        self._numbers[node] = number + 1
        schema = {"schema": "2"} if number == 0 else {}
        row = {"ts": BEGIN + self.now_s * SECOND, "seq": number, "node": node, "kind": kind}
        self.rows.append(row | columns | {"attrs": {**(attrs or {}), **schema}})
        self.now_s += 1

    def sends(self, offset: int) -> None:
        message: Row = {"msg_id": f"m{offset}", "topic": "T", "attempt": 1}
        self.emit("p", "send", {"broker": "b"}, tags="", **message)
        self.emit(
            "p", "send_ack", {"broker": "b"}, queue_id=0, queue_offset=offset, status="SEND_OK", **message
        )

    def receives(self, offset: int) -> None:
        place: Row = {"topic": "T", "queue_id": 0, "queue_offset": offset, "group": "g", "client": "c"}
        self.emit("c", "deliver", {"broker": "b"}, msg_id=f"m{offset}", **place)


def _log_with_a_loss(gap: Row | None = None, node: str = "c") -> Log:
    """Message 1 is never delivered: the group reads past it 3 s later. The node may report a gap later."""
    log = Log()
    log.emit("c", "subscribe", {"expression": "*"}, topic="T", group="g", client="c")
    for offset in (0, 1, 2):
        log.sends(offset)
    log.receives(0)
    log.receives(2)
    log.now_s = GAP_AT_S
    if gap is not None:
        log.emit(node, "gap", gap)
    log.sends(3)
    log.receives(3)
    return log


def _audited(log: Log, folder: Path) -> tuple[Audit, list[Row]]:
    source = folder / "log"
    source.mkdir()
    (source / "all.ndjson").write_text("".join(json.dumps(row) + "\n" for row in log.rows), encoding="utf-8")
    with closing(Database(folder)) as database, active.embedded():
        done = audit(read_embedded(database, find_files([str(source)]), folder), folder, pictures=False)
        return done, violations(done)


def _of(done: Audit, invariant: str) -> tuple[Verdict, str]:
    (result,) = [each for each in done.results if each.id == invariant]
    return result.verdict, result.detail


def _since(seconds: int) -> Row:
    return {"since": str(BEGIN + seconds * SECOND), "dropped": "7"}


def test_a_loss_that_the_consumer_may_have_dropped_is_unknown_and_named(tmp_path: Path) -> None:
    done, found = _audited(_log_with_a_loss(_since(1)), tmp_path)
    verdict, detail = _of(done, "DELIV-1")
    assert (verdict, found) == (Verdict.UNKNOWN, []), detail
    assert detail == (
        "a dropped event may explain 1 finding:"
        " c dropped 7 events between 2026-11-25 02:40:01 UTC and 2026-11-25 02:43:20 UTC"
    )
    assert done.gaps in detail


def test_a_gap_after_the_group_has_read_on_does_not_excuse_the_loss(tmp_path: Path) -> None:
    done, found = _audited(_log_with_a_loss(_since(150)), tmp_path)
    assert _of(done, "DELIV-1")[0] is Verdict.VIOLATED
    assert [row["msg_id"] for row in found] == ["m1"]


def test_the_gap_of_a_consumer_of_another_group_does_not_excuse_the_loss(tmp_path: Path) -> None:
    log = _log_with_a_loss(_since(1), node="other")
    log.emit("other", "subscribe", {"expression": "*"}, topic="T", group="h", client="other")
    done, found = _audited(log, tmp_path)
    assert _of(done, "DELIV-1")[0] is Verdict.VIOLATED
    assert [row["msg_id"] for row in found] == ["m1"]


@pytest.mark.parametrize("since", [None, "soon", "-1", "9" * 30])
def test_a_gap_whose_begin_is_unknown_excuses_everything_before_it(since: str | None, tmp_path: Path) -> None:
    gap = {"reason": "killed"} if since is None else {"since": since}
    done, found = _audited(_log_with_a_loss(gap), tmp_path)
    assert (_of(done, "DELIV-1")[0], found) == (Verdict.UNKNOWN, [])


def test_without_findings_a_gap_prevents_the_verdict_held(tmp_path: Path) -> None:
    log = Log()
    log.emit("c", "subscribe", {"expression": "*"}, topic="T", group="g", client="c")
    for offset in (0, 1, 2):
        log.sends(offset)
        log.receives(offset)
    without, _ = _audited(log, tmp_path)
    assert (_of(without, "DELIV-1"), without.gaps) == ((Verdict.HELD, ""), "")
    log.emit("c", "gap", _since(1))
    folder = tmp_path / "again"
    folder.mkdir()
    done, _ = _audited(log, folder)
    assert _of(done, "DELIV-1") == (Verdict.UNKNOWN, done.gaps)


def test_a_phantom_is_excused_by_a_producer_that_dropped_rows_before(tmp_path: Path) -> None:
    for node, expected in (("p", Verdict.UNKNOWN), ("c", Verdict.VIOLATED)):
        log = Log()
        log.sends(0)
        log.emit(node, "gap", _since(0))
        log.now_s = 4000
        log.receives(0)
        log.receives(1)
        folder = tmp_path / node
        folder.mkdir()
        assert _of(_audited(log, folder)[0], "DELIV-2")[0] is expected, node


def test_many_gaps_become_few_and_cover_as_much() -> None:
    gaps = [Gap("n", at, at + 1, 1) for at in range(0, 100 * GAPS_MAX, 10)]
    few = _merged(gaps)
    assert 0 < len(few) <= GAPS_MAX
    assert all(any(wide.since <= gap.since and gap.until <= wide.until for wide in few) for gap in gaps)
    far = [replace(gap, since=gap.since * gap.since, until=gap.until * gap.until) for gap in gaps]
    assert len(_merged(far)) == GAPS_MAX
    assert sum(gap.dropped or 0 for gap in _merged(far)) == len(far)


def test_the_text_names_the_largest_gap() -> None:
    assert gaps_text(()) == ""
    one, two = Gap("n", BEGIN, BEGIN, 1), Gap("m", -NUMBER_MAX, BEGIN, None)
    assert gaps_text((one,)) == (
        "n dropped 1 event between 2026-11-25 02:40:00 UTC and 2026-11-25 02:40:00 UTC"
    )
    assert gaps_text((one, two)) == (
        "m dropped an unknown number of events between the beginning and 2026-11-25 02:40:00 UTC,"
        " and 1 other gap"
    )
