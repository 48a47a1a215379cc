"""Every example is listed in the README, has a docstring, and imports only public modules."""

import ast
from pathlib import Path

import pytest

from tests.examples.programs import EXAMPLES
from tests.package import public_api

PROGRAMS = sorted(EXAMPLES.rglob("*.py"))
PUBLIC = {
    line.removeprefix("# ") for line in public_api.FILE.read_text().splitlines() if line.startswith("# ")
}
NOT_PUBLIC_YET = {
    # The README documents them; the public API has no module for them.
    "mqproof.spark_audit.runtime.session": ["spark_store.py", "spark_topic.py"],
    "mqproof.spark_audit.sources.stores": ["spark_store.py"],
    # Written by `mqproof conform template`.
    "mqproof.conformance.suites.flush.target": ["sqlite_broker.py"],
}


def test_the_readme_lists_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    places = {path.relative_to(EXAMPLES).parts for path in PROGRAMS} | {
        ("tla", "Lock.tla"),
        ("junit", "pom.xml"),
        ("go_testing", "go.mod"),
        ("kafka_audit", "kafka.toml"),
        ("adapter_java", "Adapter.java"),
        ("adapter_go", "main.go"),
    }
    listed = {f"[{parts[0]}{'/' if parts[1:] else ''}]" for parts in places}
    assert [name for name in sorted(listed) if name not in page] == []
    assert page.count("\n| [") == len(listed)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_each_example_is_short_and_has_a_docstring(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 110


@pytest.mark.parametrize("name", ["adapter_java/Adapter.java", "adapter_go/main.go", "adapter_go/client.go"])
def test_each_file_of_the_adapters_has_at_most_200_lines_of_120_characters(name: str) -> None:
    lines = (EXAMPLES / name).read_text().expandtabs(4).splitlines()
    assert len(lines) <= 200
    assert max(map(len, lines)) <= 120


def test_examples_import_only_public_modules() -> None:
    found: dict[str, list[str]] = {}
    for path in PROGRAMS:
        for node in ast.walk(ast.parse(path.read_text())):
            module = (isinstance(node, ast.ImportFrom) and node.module) or ""
            if module.split(".")[0] == "mqproof" and module not in PUBLIC:
                found.setdefault(module, []).append(path.name)
    assert found == NOT_PUBLIC_YET
