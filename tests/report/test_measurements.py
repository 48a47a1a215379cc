"""A later run is worse if it is slower than the ranges of the rounds explain, and only then."""

import json
from pathlib import Path
from typing import Any

import pytest

import mqproof
from mqproof.report.measurements import (
    Measurements,
    MeasurementsError,
    changes_table,
    compare,
    described,
    read,
    results,
    table,
    write,
)
from mqproof.report.model import Exit, Verdict, exit_code

RATE, SECONDS = "64 outstanding: sends/s", "start: s"


def run(
    tmp_path: Path,
    rows: dict[str, dict[str, list[float]]],
    baseline: str | None = None,
    benchmark: str = "bench broker",
    **changed: Any,
) -> Measurements:
    file = tmp_path / "result.json"
    write(file, {"own": 1, **described(benchmark, rows.items(), baseline), **changed})
    return read(file)


@pytest.mark.parametrize(
    ("row", "new", "verdict"),
    [
        (RATE, [99.0, 101.0], Verdict.HELD),
        (RATE, [97.0, 98.0], Verdict.HELD),
        (RATE, [90.0, 91.0], Verdict.VIOLATED),
        (RATE, [190.0, 191.0], Verdict.HELD),
        (SECONDS, [110.0, 111.0], Verdict.VIOLATED),
        (SECONDS, [50.0, 51.0], Verdict.HELD),
    ],
)
def test_a_change_for_the_worse_beyond_the_noise_is_a_violation(
    tmp_path: Path, row: str, new: list[float], verdict: Verdict
) -> None:
    before = run(tmp_path, {row: {"mqproof": [99.0, 101.0]}})
    (change,) = compare(before, run(tmp_path, {row: {"mqproof": new}}))
    assert (change.verdict, change.compared) == (verdict, "value")


def test_with_a_baseline_the_ratios_are_compared_even_on_another_machine(tmp_path: Path) -> None:
    before = run(tmp_path, {RATE: {"mqproof": [100, 101], "Apache": [50, 50]}}, "Apache")
    slower_machine = run(tmp_path, {RATE: {"mqproof": [50, 51], "Apache": [25, 25]}}, "Apache", machine="m")
    (change,) = compare(before, slower_machine)
    assert (change.side, change.compared, change.verdict) == ("mqproof", "ratio", Verdict.HELD)
    worse = run(tmp_path, {RATE: {"mqproof": [100, 101], "Apache": [75, 75]}}, "Apache", machine="m")
    assert [change.verdict for change in compare(before, worse)] == [Verdict.VIOLATED]


@pytest.mark.parametrize(
    ("rows", "changed", "why"),
    [
        ({RATE: {"mqproof": [10.0, 10.0]}}, {"machine": "another"}, "the machines or their Python differ"),
        ({RATE: {"mqproof": [10.0]}}, {}, "fewer than 2 rounds"),
        ({RATE: {"mqproof": [10.0, 110.0]}}, {}, "the rounds differ so much"),
    ],
)
def test_what_cannot_be_judged_is_not_tested(
    tmp_path: Path, rows: dict[str, dict[str, list[float]]], changed: dict[str, Any], why: str
) -> None:
    changes = compare(run(tmp_path, {RATE: {"mqproof": [100, 101]}}), run(tmp_path, rows, **changed))
    assert [(change.verdict, why in change.detail) for change in changes] == [(Verdict.NOT_TESTED, True)]
    assert exit_code(results("bench broker", changes)) == Exit.INCONCLUSIVE


def test_a_row_that_cannot_be_judged_does_not_change_the_verdict_of_the_others(tmp_path: Path) -> None:
    rows: dict[str, dict[str, list[float]]] = {RATE: {"mqproof": [10, 11]}, SECONDS: {"mqproof": [1]}}
    changes = compare(run(tmp_path, rows), run(tmp_path, rows))
    assert exit_code(results("bench broker", changes)) == Exit.HELD
    worse = {**rows, RATE: {"mqproof": [1.0, 1.0]}}
    changes = compare(run(tmp_path, rows), run(tmp_path, worse))
    assert exit_code(results("bench broker", changes)) == Exit.VIOLATED
    assert changes_table(changes).split("\n") == [
        "✗ 64 outstanding: sends/s, mqproof",
        "    value  -90.5%, noise 9.5%: worse than the noise explains",
        "? start: s, mqproof",
        "    value   +0.0%, noise 0.0%: fewer than 2 rounds: the noise is not known",
    ]


def test_results_of_different_benchmarks_or_without_a_common_row_are_refused(tmp_path: Path) -> None:
    one = run(tmp_path, {RATE: {"mqproof": [1, 1]}})
    with pytest.raises(MeasurementsError, match="bench broker cannot be compared with bench send"):
        compare(one, run(tmp_path, {RATE: {"mqproof": [1, 1]}}, benchmark="bench send"))
    with pytest.raises(MeasurementsError, match="no row and side in common"):
        compare(one, run(tmp_path, {SECONDS: {"mqproof": [1, 1]}}))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"rows": []}', "[" * 100_000, json.dumps({"benchmark": "b", "rows": [1]})]
)
def test_a_file_that_is_no_result_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(MeasurementsError, match=r"other\.json: not the result of a benchmark: .*--json FILE"):
        read(tmp_path / "other.json")


def test_a_result_that_is_older_than_the_key_of_the_version_is_read(tmp_path: Path) -> None:
    result = described("bench broker", [(RATE, {"mqproof": [1.0]})])
    del result["version"]
    write(tmp_path / "old.json", result)
    old = read(tmp_path / "old.json")
    assert old.version is None
    assert table(old).title == f"bench broker: {old.date}, {old.machine}"


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(MeasurementsError, match=r"missing\.json: No such file"):
        read(tmp_path / "missing.json")


def test_a_table_has_medians_ranges_and_ratios(tmp_path: Path) -> None:
    measured = run(
        tmp_path, {SECONDS: {"mqproof": [2, 1, 3], "Apache": [4, 4, 4]}}, "Apache", date="2026-11-01"
    )
    found = table(measured)
    assert found.title.startswith(f"bench broker: mqproof {mqproof.__version__}, 2026-11-01, ")
    assert found.columns == ("row", "mqproof", "Apache", "ratio to Apache")
    assert found.rows == ((SECONDS, "2 (1 to 3)", "4 (4 to 4)", "2.00"),)


def test_two_sides_without_a_refused_message_are_equal(tmp_path: Path) -> None:
    measured = run(tmp_path, {"refused: messages": {"mqproof": [0, 0], "Apache": [0, 0]}}, "Apache")
    assert table(measured).rows == (("refused: messages", "0 (0 to 0)", "0 (0 to 0)", "1.00"),)


def test_a_table_of_several_sides_has_a_ratio_of_each_to_the_baseline_and_their_medians(
    tmp_path: Path,
) -> None:
    rows = {
        RATE: {"mqproof": [6000.0], "C++": [1000.0], "Java": [2000.0]},
        SECONDS: {"mqproof": [4.0], "Java": [1.0]},
        "stop: s": {"mqproof": [1.0]},
    }
    found = table(run(tmp_path, rows, "Java"))
    assert found.columns == (
        "row",
        "mqproof",
        "C++",
        "Java",
        "ratio of mqproof to Java",
        "ratio of C++ to Java",
    )
    assert found.rows == (
        (RATE, "6,000", "1,000", "2,000", "3.00", "0.50"),
        (SECONDS, "4", "", "1", "0.25", ""),
        ("stop: s", "1", "", "", "", ""),
        ("median of the ratios", "", "", "", "1.62", "0.50"),
    )


def test_a_table_without_a_baseline_has_no_ratio(tmp_path: Path) -> None:
    found = table(run(tmp_path, {RATE: {"one": [1.0], "two": [2.0]}}))
    assert (found.columns, found.rows) == (("row", "one", "two"), ((RATE, "1", "2"),))
