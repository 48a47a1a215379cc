"""Goal: the page of the catalogue has every invariant with its checks in every layer."""

import re

from docs_site import catalogue as pages
from mqproof.spec.catalogue import LAYERS, catalogue

PAGE = pages.page()


def test_every_invariant_has_a_table_row_and_a_section() -> None:
    for invariant in catalogue().values():
        assert f"| [{invariant.id}](#{invariant.id.lower()}) | {invariant.name} |" in PAGE
        assert f"## {invariant.id} {invariant.name} {{: #{invariant.id.lower()} }}" in PAGE


def test_the_source_of_each_invariant_is_a_link_to_a_protocol_chapter() -> None:
    sources = re.findall(r"Source: (.*)\.$", PAGE, re.MULTILINE)
    assert len(sources) == len(catalogue())
    assert [each for each in sources if not re.fullmatch(r"\[.+\]\(protocol/[\w-]+\.md#[\w-]+\)", each)] == []


def test_the_page_names_every_check_and_every_mutant() -> None:
    for invariant in catalogue().values():
        for layer in LAYERS:
            for name in (*invariant.checks.get(layer, ()), *invariant.mutants.get(layer, ())):
                assert f"`{name}`" in PAGE


def test_a_layer_without_a_check_has_a_reason_or_is_open() -> None:
    rows = re.findall(rf"(?m)^\| (?:{'|'.join(LAYERS)}) \| (.*?) \| ", PAGE)
    assert len(rows) == len(catalogue()) * len(LAYERS)
    assert [row for row in rows if not row.startswith(("`", "none: ", "open"))] == []
