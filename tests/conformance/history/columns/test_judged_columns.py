"""A history in columns has the verdicts, counts and witnesses of its lines.

Method: judge healthy histories, those with an injected anomaly or a legal surprise, and those whose lines
were changed at random, as lines and as columns. A sieve without one of its conditions finds something else.
"""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history import lines as of
from mqproof.conformance.history.columns import conversion, identities, line_check, sieve, writer
from mqproof.conformance.history.columns.conversion import read_columns, rest_lines, write_columns
from mqproof.conformance.history.columns.identities import fingerprints
from mqproof.conformance.history.columns.judged_columns import Found, judge_columns
from mqproof.conformance.history.columns.line_check import last_time
from mqproof.conformance.history.columns.tables import TABLES, Columns
from mqproof.conformance.history.exact_delivery import ExactDelivery, clean
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.lines import (
    ConsumeValue,
    HistoryError,
    Line,
    PollValue,
    RecallValue,
    SetupValue,
)
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.parallel import findings
from mqproof.conformance.history.record import Record
from mqproof.report.model import Verdict
from tests.conformance.history.columns.changed import changed
from tests.conformance.history.columns.healthy import BOUND, UNBOUND, healthy
from tests.conformance.history.columns.irregular import CHANGES, ORDERS, QUEUE, Edit, irregular
from tests.conformance.history.test_rules import EXPLAINED

EXPECT: Final = sieve.expect
IMPLIED: Final = {
    "a batch is too long": "so that instants within a batch are distinct",
    "a call without messages": "an empty call has no first offset",
    "an offset id differs from the answer": "each place then has one offset id to compare",
    "contents without a delivery": "only a folder that was not converted from lines has any",
    "no message was sent": "an empty array has no minimum",
    "offsets are too large": "so that no sum overflows",
    "two sends have one offset": "a message would be compared with that of another place",
}
"""Conditions without which the sieve would fail, or which others imply, and why they exist."""


def _in_columns(lines: list[Line], folder: Path, processes: int = 1) -> Found:
    write_columns(lines, "h.jsonl", folder / "h.columns")
    return judge_columns(folder / "h.columns", processes)


def _differences(history: Record, found: Found) -> list[str]:
    """Return the rules whose findings differ."""
    one, two = findings(history, 1), found.findings
    assert set(one) == set(two)
    assert (history.operations, history.asked) == (found.whole.operations, found.whole.asked)
    return [rule for rule in one if _facts(one[rule][0]) != _facts(two[rule][0])]


def _facts(finding: Finding) -> tuple[object, ...]:
    witnesses = sorted(map(repr, finding.witnesses))
    return finding.verdict, finding.counts, sorted(finding.explained), witnesses


@pytest.mark.parametrize("setup", [BOUND, UNBOUND])
def test_all_queues_of_a_healthy_history_are_judged_from_columns(setup: SetupValue, tmp_path: Path) -> None:
    lines = healthy(1, setup=setup).lines
    history, found = record(lines), _in_columns(lines, tmp_path)
    assert (len(found.cleared), found.others) == (4, {})
    assert found.whole.reads == []
    assert _differences(history, found) == []
    assert sum(finding.verdict is Verdict.HELD for finding, _ in found.findings.values()) > 25


@pytest.mark.parametrize("name", INJECTED)
def test_an_injected_anomaly_is_found_in_columns_as_in_lines(name: str, tmp_path: Path) -> None:
    world = clean(5, 16)
    INJECTED[name].inject(world)
    assert _differences(record(world.lines), _in_columns(world.lines, tmp_path)) == []


def test_a_history_with_a_gap_is_refused_and_leaves_no_folder(tmp_path: Path) -> None:
    lines = healthy(1).lines
    del lines[5]
    with pytest.raises(
        HistoryError, match=r"h.jsonl: line 5 is missing.*; a history with gaps has no columns"
    ):
        write_columns(lines, "h.jsonl", tmp_path / "h.columns")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("explained", EXPLAINED, ids=lambda each: each.__name__)
def test_an_event_with_a_known_cause_is_explained_in_columns_as_in_lines(
    explained: Callable[[ExactDelivery], None], tmp_path: Path
) -> None:
    world = clean(5, 16)
    explained(world)
    assert _differences(record(world.lines), _in_columns(world.lines, tmp_path)) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_changed_history_is_judged_from_columns_as_from_lines(seed: int, tmp_path: Path) -> None:
    lines = changed(seed)
    assert _differences(record(lines), _in_columns(lines, tmp_path)) == []


def test_columns_have_the_operations_of_the_lines(tmp_path: Path) -> None:
    lines = changed(3)
    write_columns(lines, "h.jsonl", tmp_path / "h.columns")
    back, history = record(read_columns(tmp_path / "h.columns")), record(lines)
    assert [name for name in vars(history) if getattr(history, name) != getattr(back, name)] == []


def test_two_processes_find_what_one_process_finds(tmp_path: Path) -> None:
    lines = changed(4)
    found = _in_columns(lines, tmp_path, 2)
    assert found.cleared
    assert _differences(record(lines), found) == []


@pytest.mark.parametrize("condition", CHANGES)
def test_a_sieve_without_a_condition_finds_something_else(
    condition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = irregular(condition)
    history, found = record(lines), _in_columns(lines, tmp_path)
    text = re.compile(re.escape(condition).replace(r"\{name\}", ".*"))
    assert any(map(text.fullmatch, found.others.values())), found.others
    assert _differences(history, found) == []

    def expect(holds: object, otherwise: str) -> None:
        if not text.fullmatch(otherwise):
            EXPECT(holds, otherwise)

    monkeypatch.setattr(sieve, "expect", expect)
    try:
        without = judge_columns(tmp_path / "h.columns", 1)
    except IndexError:
        return
    assert _differences(history, without) != []


def test_each_condition_of_the_sieve_is_tested_or_implied() -> None:
    calls = (node for node in ast.walk(ast.parse(inspect.getsource(sieve))) if isinstance(node, ast.Call))
    mine = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "expect")
    texts = {ast.unparse(call.args[1]).removeprefix("f").strip("'\"") for call in mine}
    assert texts == {*CHANGES, *IMPLIED}


def test_contents_that_are_written_again_are_one_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "_KNOWN_MAX", 2)
    lines = healthy(1).lines
    found = _in_columns(lines, tmp_path)
    queue = Columns(tmp_path / "h.columns").queue(0)
    sent, read = int(queue.sends.count.sum()), set(queue.contents.offset.tolist())
    assert min(queue.contents.rows, queue.messages.rows) > sent
    assert queue.offset_ids.rows > len(read)
    assert (len(found.cleared), _differences(record(lines), found)) == (4, [])


def test_rows_in_several_blocks_are_those_of_one_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = healthy(1).lines
    write_columns(lines, "h.jsonl", tmp_path / "one")
    monkeypatch.setattr(writer, "_BLOCK_ROWS", 500)
    write_columns(lines, "h.jsonl", tmp_path / "many")
    one, many = (Columns(tmp_path / name) for name in ("one", "many"))
    assert len((tmp_path / "many" / "0.jsonl").read_bytes().splitlines()) > 7
    assert read_columns(tmp_path / "many") == read_columns(tmp_path / "one")
    for table, columns in TABLES.items():
        for column in columns:
            found = [getattr(getattr(each.queue(0), table), column).tolist() for each in (one, many)]
            assert found[0] == found[1]


@pytest.mark.parametrize("window", [1, 7, 100])
def test_lines_are_examined_in_windows_as_at_once(
    window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = changed(3)
    write_columns(lines, "h.jsonl", tmp_path / "h.columns")
    columns = Columns(tmp_path / "h.columns")
    monkeypatch.setattr(line_check, "_WINDOW", window)
    assert last_time(columns, rest_lines(columns)) == lines[-1].time


def test_ids_are_compared_in_ranges_as_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit = Edit(healthy(1, 10).lines)
    known = edit.at[QUEUE][2]
    edit.append(of.Poll, PollValue("new", ORDERS, 2), PollValue(messages=(known,), next=3, max=99))
    at_once = _in_columns(edit.finished(), tmp_path).others
    monkeypatch.setattr(identities, "_RANGE_NUMBERS", 3)
    assert judge_columns(tmp_path / "h.columns", 1).others == at_once
    assert QUEUE in at_once


@pytest.mark.parametrize("elsewhere", ["queue", "retry", "recall", "offset id"])
def test_a_queue_whose_ids_are_elsewhere_is_judged_from_lines(elsewhere: str, tmp_path: Path) -> None:
    edit = Edit(healthy(1, 10).lines)
    known, other = edit.at[QUEUE][2], edit.at[ORDERS][2]
    match elsewhere:
        case "queue":
            edit.append(of.Poll, PollValue("new", ORDERS, 2), PollValue(messages=(known,), next=3, max=99))
        case "retry":
            again = replace(known, offset=0, times=1)
            edit.append(of.Consume, ConsumeValue("c", "%RETRY%c/b/0", "c0", (again,)), ConsumeValue())
        case "recall":
            edit.append(of.Recall, RecallValue(known.id), RecallValue(known.id))
        case _:
            edit.deliver(2, offset_id=other.offset_id)
            for _, place in edit.operations(of.Send):
                if (edit.value(place).queue, edit.value(place).offset) == (QUEUE, 2):
                    edit.put(place, offset_id=other.offset_id)
    lines = edit.finished()
    found = _in_columns(lines, tmp_path)
    assert found.others[QUEUE].endswith("id occurs elsewhere, too")
    assert _differences(record(lines), found) == []


def test_texts_of_different_widths_have_equal_fingerprints() -> None:
    texts = [b"", b"a", b"12345678", b"123456789", b"b" * 40]
    one = fingerprints(np.array(texts, "S40"))
    assert len(set(one.tolist())) == len(texts)
    assert [fingerprints(np.array([text], "S")).tolist() for text in texts[1:]] == [
        [n] for n in one[1:].tolist()
    ]
