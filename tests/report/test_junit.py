"""JUnit XML: violated fails; unknown and not tested are skipped, with different messages."""

from xml.etree import ElementTree

import pytest

from mqproof.report import junit
from mqproof.report.model import Report
from tests.report.examples import EMPTY, NASTY_REPORT, REPLAY, REPORT


def cases(report: Report) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(junit.render(report).encode())
    return {f"{case.get('classname')} {case.get('name')}": case for case in root.iter("testcase")}


def test_each_verdict_has_the_right_junit_element() -> None:
    held, violated, unknown, not_tested = (
        cases(REPORT)[name]
        for name in (
            "mqproof.tla FLUSH-1 SyncAckedDurable",
            "mqproof.conformance FLUSH-1 SyncAckedDurable",
            "mqproof.tla FLUSH-3 QueuePointsIntoLog",
            "mqproof.audit DELIV-1 NoAckedLost",
        )
    )
    assert [child.tag for child in held] == ["properties"]
    failure = violated.find("failure")
    assert failure is not None
    assert failure.get("message") == "an acked message is lost"
    assert "m_lost was acked and is gone" in (failure.text or "")
    assert (failure.text or "").endswith(f"replay: {REPLAY}")
    assert unknown.find("skipped[@message='unknown: no crash happened']") is not None
    assert not_tested.find("skipped[@message='not tested: the target cannot restart']") is not None
    assert unknown.find("properties/property[@name='verdict'][@value='unknown']") is not None


def test_the_totals_are_the_numbers_of_results_per_verdict() -> None:
    root = ElementTree.fromstring(junit.render(REPORT).encode())
    totals = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert totals == {"tests": "4", "failures": "1", "errors": "0", "skipped": "2"}
    assert [suite.get("name") for suite in root] == ["tla", "conformance", "audit"]


@pytest.mark.parametrize("report", [NASTY_REPORT, EMPTY], ids=["unsafe text", "empty"])
def test_any_text_in_a_report_gives_well_formed_xml(report: Report) -> None:
    assert len(cases(report)) == len(report.results)
