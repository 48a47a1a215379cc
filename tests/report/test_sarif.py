"""SARIF: only violations are results, their number is limited, and their fingerprints are stable."""

import json
from dataclasses import replace
from typing import Any

import pytest

from mqproof.report import sarif
from mqproof.report.model import Report, Witness
from tests.report.examples import EMPTY, NASTY_REPORT, REPLAY, REPORT


def run(report: Report) -> dict[str, Any]:
    document = json.loads(sarif.render(report))
    assert document["version"] == "2.1.0"
    (only,) = document["runs"]
    assert isinstance(only, dict)
    return only


def test_each_witness_of_a_violation_is_a_result_with_a_location() -> None:
    results = run(REPORT)["results"]
    assert [result["ruleId"] for result in results] == ["FLUSH-1", "FLUSH-1"]
    assert results[0]["message"]["text"] == (
        f"an acked message is lost: m_lost was acked and is gone; replay: {REPLAY}"
    )
    assert results[0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.log"},
        "region": {"startLine": 7},
    }
    (without_file,) = results[1]["locations"]
    assert without_file["logicalLocations"] == [{"fullyQualifiedName": "conformance/FLUSH-1"}]
    assert without_file["physicalLocation"] == {"artifactLocation": {"uri": "conformance/FLUSH-1"}}


def test_each_rule_id_is_declared_and_undecided_results_are_notifications() -> None:
    only = run(REPORT)
    assert [rule["id"] for rule in only["tool"]["driver"]["rules"]] == ["FLUSH-1", "FLUSH-3", "DELIV-1"]
    notifications = only["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notifications] == [
        "FLUSH-3 QueuePointsIntoLog (tla): unknown: no crash happened",
        "DELIV-1 NoAckedLost (audit): not tested: the target cannot restart",
    ]


def test_the_number_of_results_is_limited_and_the_total_is_reported() -> None:
    violated = REPORT.results[1]
    witnesses = tuple(Witness(f"m{number}") for number in range(sarif.RESULTS_MAX + 10))
    only = run(replace(REPORT, results=(replace(violated, witnesses=witnesses),)))
    assert len(only["results"]) == sarif.RESULTS_MAX
    assert only["properties"]["violations"] == sarif.RESULTS_MAX + 10
    assert only["properties"]["violationsWritten"] == sarif.RESULTS_MAX


def test_a_violation_without_a_witness_is_a_result() -> None:
    only = run(replace(REPORT, results=(replace(REPORT.results[1], witnesses=()),)))
    assert len(only["results"]) == 1


def test_the_fingerprint_depends_on_the_values_and_not_on_the_wording_of_a_witness() -> None:
    violated = REPORT.results[1]
    first = sarif.fingerprint(violated, Witness("lost at 12:00", {"msg_id": "m1"}))
    assert first == sarif.fingerprint(violated, Witness("lost at 13:00", {"msg_id": "m1"}))
    assert first != sarif.fingerprint(violated, Witness("lost at 12:00", {"msg_id": "m2"}))


@pytest.mark.parametrize("report", [NASTY_REPORT, EMPTY], ids=["unsafe text", "empty"])
def test_any_report_can_be_rendered(report: Report) -> None:
    assert sarif.render(report).isascii()
    run(report)


def test_violations_without_a_stored_witness_are_counted() -> None:
    violated = REPORT.results[1]
    properties = run(replace(REPORT, results=(replace(violated, found=70),)))["properties"]
    assert (properties["violations"], properties["violationsWritten"]) == (70, len(violated.witnesses))
