"""The files for contributors agree with the project: hooks, workflow, changelog, decisions, links."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.report.markdown import anchor as anchor_of
from tests.protocol_chapters import headings

ROOT = Path(__file__).parents[1]
DECISIONS = ROOT / "docs" / "decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *DECISIONS.glob("*.md"),
]
CHANGES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def text(*path: str) -> str:
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


def loaded(*path: str) -> Any:
    return yaml.safe_load(text(*path))


def test_the_hooks_are_the_commands_of_make_lint() -> None:
    recipes = re.findall(r"^lint-\w+:.*\n((?:\t.*\n)+)", text("Makefile"), re.MULTILINE)
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for r in recipes for line in r.splitlines()]
    [repository] = loaded(".pre-commit-config.yaml")["repos"]
    assert sorted(hook["entry"] for hook in repository["hooks"]) == sorted(commands)
    assert {hook["pass_filenames"] for hook in repository["hooks"]} == {False}


def test_the_workflow_runs_ci_with_every_supported_python() -> None:
    job = loaded(".github", "workflows", "ci.yml")["jobs"]["test"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    named = tomllib.loads(text("pyproject.toml"))["project"]["classifiers"]
    versions = [one.rpartition(" ")[2] for one in named if re.search(r":: 3\.\d+$", one)]
    assert job["strategy"]["matrix"]["python-version"] == versions


def test_the_templates_are_forms() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    for form in (loaded(*path.relative_to(ROOT).parts) for path in forms if path.stem != "config"):
        assert form["name"]
        assert form["description"]
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert ids
        assert len(set(ids)) == len(ids)


def test_the_changelog_is_grouped_and_newest_first() -> None:
    headings = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", text("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    released = headings[1:]
    assert len(released) == len(re.findall(r"^## ", text("CHANGELOG.md"), re.MULTILINE)) - 1
    assert [date for _, date in released] == sorted((date for _, date in released), reverse=True)
    assert released[0][0] == tomllib.loads(text("pyproject.toml"))["project"]["version"]
    assert set(re.findall(r"^### (.*)$", text("CHANGELOG.md"), re.MULTILINE)) <= CHANGES


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_each_decision_has_its_sections_and_a_row_of_the_index(record: Path) -> None:
    written = record.read_text(encoding="utf-8")
    number, title = re.findall(r"\A# (\d+)\. (.*)", written)[0]
    assert record.name.startswith(f"{int(number):04}-")
    [(date, status)] = re.findall(r"^Date: (\S+)\. Status: (.*)\.$", written, re.MULTILINE)
    assert re.findall(r"^## (.*)$", written, re.MULTILINE) == [
        "Context", "Decision", "Consequences", "Alternatives",
    ]  # fmt: skip
    row = re.search(rf"^\| \[{number}\]\({record.name}\) \| .* \| {date} \| {status} \|$",
                    text("docs", "decisions", "README.md"), re.MULTILINE)  # fmt: skip
    assert row is not None, title


def test_every_decision_is_in_the_index() -> None:
    listed = re.findall(r"\]\((\d{4}-.*?\.md)\)", text("docs", "decisions", "README.md"))
    assert listed == [record.name for record in RECORDS]


def test_contributing_names_paths_that_exist() -> None:
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", text("CONTRIBUTING.md"))
    assert named
    missing = [
        name
        for name in dict.fromkeys(named)
        if "NAME" not in name
        and not name.startswith("build/")
        and not any((ROOT / part / name).exists() for part in ("", "conformance", "spark_audit", "docs"))
    ]
    assert missing == []


def test_contributing_names_the_resolution_of_targets_for_every_suite() -> None:
    table = text("CONTRIBUTING.md").split("| suite | file")[1].split("\n\n")[0]
    named = [
        name for row in re.findall(r"^\| ([a-z_, ]+) \|", table, re.MULTILINE) for name in row.split(", ")
    ]
    assert sorted(named) == sorted(SUITES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_relative_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_anchors_of_links_are_headings(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    broken = [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in map(anchor_of, headings(page.parent / target if target else page))
    ]
    assert broken == []


def test_the_readme_can_be_read_at_once() -> None:
    assert 80 <= len(text("README.md").splitlines()) <= 120
