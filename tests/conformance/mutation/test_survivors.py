"""survivors.toml states who can notice a mutant, with a reason, and names mutants that exist."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.conformance.engine.coverage_feedback import PARTS
from mqproof.conformance.mutation.loading import modules
from mqproof.conformance.mutation.operators import Mutant, mutants
from mqproof.conformance.mutation.survivors import (
    ALL,
    UNSTATED,
    Kind,
    Stated,
    SurvivorsError,
    key,
    line_key,
    stated,
    stated_of,
)


def test_stated_mutants_exist() -> None:
    files = modules(PARTS)
    named: dict[str, set[str]] = {}
    for module, text in stated():
        named.setdefault(module, set()).add(text)
    for module, texts in named.items():
        made = mutants(module, files[module].read_text(encoding="utf-8"))
        existing = {name for each in made for name in (key(each), line_key(each), ALL)}
        assert texts <= existing, module


def test_what_is_stated_of_a_mutant_precedes_that_of_its_line_and_of_its_module() -> None:
    one = Mutant("m", 0, "shift-constant", 5, "1", "2", text="return 1")
    known = {
        ("m", "*"): Stated(Kind.INVISIBLE, "module"),
        ("m", "* | return 1"): Stated(Kind.VISIBLE, "line"),
        ("m", "shift-constant: 1 -> 2 | return 1"): Stated(Kind.EQUIVALENT, "mutant"),
    }
    assert stated_of(one, known).reason == "mutant"
    assert stated_of(replace(one, after="0"), known).reason == "line"
    assert stated_of(replace(one, text="return 11"), known).reason == "module"
    assert stated_of(replace(one, module="n"), known) == UNSTATED


def test_each_kind_is_read_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "survivors.toml"
    file.write_text(
        '[visible."m"]\n"a: 1 -> 2" = "send it"\n[equivalent."m"]\n"b: x -> y" = "same"\n', encoding="utf-8"
    )
    assert stated(file) == {
        ("m", "a: 1 -> 2"): Stated(Kind.VISIBLE, "send it"),
        ("m", "b: x -> y"): Stated(Kind.EQUIVALENT, "same"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[hidden."m"]\n"a" = "why"\n', "hidden: expected tables"),
        ('["not stated"."m"]\n"a" = "why"\n', "not stated: expected tables"),
        ('invisible = "all"\n', "invisible: expected tables"),
        ('[invisible]\nm = "why"\n', "invisible.m: expected a table"),
        ('[invisible."m"]\n"a" = ""\n', "invisible.m: a: expected a reason"),
        ('[invisible."m"]\n"a" = "x"\n[visible."m"]\n"a" = "y"\n', "visible.m: a: stated twice"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "survivors.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SurvivorsError, match=message):
        stated(file)
