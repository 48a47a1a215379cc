"""survivors.toml states who can notice a mutant, with a reason, and names mutants that exist."""

from pathlib import Path

import pytest

from mqproof.conformance.engine.coverage_feedback import PARTS
from mqproof.conformance.mutation.loading import modules
from mqproof.conformance.mutation.operators import mutants
from mqproof.conformance.mutation.survivors import Kind, Stated, SurvivorsError, key, stated


def test_stated_mutants_exist() -> None:
    files = modules(PARTS)
    named: dict[str, set[str]] = {}
    for module, text in stated():
        named.setdefault(module, set()).add(text)
    for module, texts in named.items():
        existing = {key(each) for each in mutants(module, files[module].read_text(encoding="utf-8"))}
        assert texts <= existing, module


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
