"""docs/explanation/audit-checks.md lists the audit's checks for every invariant and known anomaly."""

import re
from pathlib import Path

from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.reporting.summary import CAUSES
from mqproof.spec.catalogue import catalogue

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "audit-checks.md").read_text(encoding="utf-8")
KNOWN = (
    *(f"A{n:02}" for n in range(1, 18)),
    *(f"B{n:02}" for n in range(1, 7)),
    *(f"C{n:02}" for n in range(1, 23)),
)


def rows(columns: int) -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if len(row) == columns and re.fullmatch(r"[A-Z]+-?\d+", row[0])]


def test_the_page_lists_each_check_with_its_rules() -> None:
    documented = {id_: tuple(rules.split(", ")) for id_, _, rules in rows(3) if id_ in catalogue()}
    assert documented == {name: check.rules for name, check in CHECKS.items()}


def test_the_page_agrees_with_the_catalogue_about_each_invariant() -> None:
    excused = dict(row for row in rows(2))
    judged = {name: i for name, i in catalogue().items() if not name.startswith("SPEC")}
    assert excused == {name: i.why["audit"] for name, i in judged.items() if "audit" in i.why}
    unbuilt = re.search(r"^No check exists yet for ([A-Z0-9, -]+)\.", PAGE, re.MULTILINE)
    listed = set(unbuilt[1].split(", ")) if unbuilt else set()
    assert listed == {name for name, i in judged.items() if i.cell("audit") == "open"}
    assert set(judged) == set(excused) | set(CHECKS) | listed


def test_each_known_anomaly_has_a_row_whose_rules_exist() -> None:
    documented = {row[0]: row[2] for row in rows(3) if row[0] not in catalogue()}
    assert tuple(documented) == KNOWN
    for row, text in documented.items():
        named = re.findall(r"[A-Z]+-\d+", text)
        assert named or text.startswith(("not: ", "every check")), row
        rules = {rule for name in named for rule in CHECKS[name].rules}
        for rule in re.findall(r"(?<![`\w])[a-z]+(?:-[a-z]+)+(?![`\w])", text.split(";")[0]):
            assert rule in rules, (row, rule)
        assert set(re.findall(r"`(\w+)`", text)) <= set(CAUSES), row
