"""The keys of the JSON report are a contract, and a written report can be read back."""

import json
from typing import Any

import pytest

from mqproof.report import json_file
from mqproof.report.json_file import ReportFileError
from tests.report.examples import EMPTY, NASTY_REPORT, REPORT


@pytest.mark.parametrize("report", [REPORT, NASTY_REPORT, EMPTY], ids=["usual", "unsafe text", "empty"])
def test_a_written_report_is_read_back_unchanged(report: Any) -> None:
    assert json_file.from_json(json_file.render(report)) == report


def test_the_report_has_the_documented_keys() -> None:
    document = json.loads(json_file.render(REPORT))
    assert list(document) == [
        "schema",
        "title",
        "verdict",
        "exit_code",
        "tally",
        "facts",
        "results",
        "tables",
        "figures",
    ]
    assert document["verdict"] == "violated"
    assert document["exit_code"] == 1
    assert document["tally"] == {"held": 1, "violated": 1, "unknown": 1, "not tested": 1}
    assert document["results"][2] == {
        "id": "FLUSH-3",
        "name": "QueuePointsIntoLog",
        "layer": "tla",
        "verdict": "unknown",
        "counts": {},
        "witnesses": [],
        "detail": "no crash happened",
        "replay": "",
        "seconds": 0.0,
        "found": 0,
        "all_in": "",
    }


def test_the_json_text_is_ascii_and_ends_with_a_newline() -> None:
    text = json_file.render(NASTY_REPORT)
    assert text.isascii()
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "run.json: not JSON"),
        ("[]", "run.json: report schema None, at most 1 expected"),
        ('{"schema": 2}', "run.json: report schema 2, at most 1 expected"),
        ('{"schema": 1}', "run.json: not a report: .*title"),
        (json_file.render(REPORT).replace('"held",', '"perfect",'), r"run.json: not a report: .*\$.results"),
        (json_file.render(REPORT).replace("12345", "0"), "run.json: not a report: .*nothing was counted"),
    ],
)
def test_the_error_for_an_invalid_report_file_names_the_file_and_the_reason(text: str, message: str) -> None:
    with pytest.raises(ReportFileError, match=message):
        json_file.from_json(text, "run.json")
