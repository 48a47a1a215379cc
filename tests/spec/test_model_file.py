"""Goal: an invalid models.toml is rejected, and ours checks every property of the catalogue."""

import tomllib
from pathlib import Path

import pytest

from mqproof.spec.catalogue import catalogue
from mqproof.spec.model_file import Kind, ModelFileError, Question, load

COUNTER = Path(__file__).parent / "models.toml"


def question(name: str) -> Question:
    return next(question for question in load(COUNTER).questions["Counter"] if question.name == name)


def test_a_mutant_run_checks_only_the_property_it_must_violate() -> None:
    greedy = question("Greedy")
    assert (greedy.kind, greedy.module, greedy.violates) == (Kind.MUTANT, "Greedy", "WithinMax")
    assert greedy.config.properties == ("WithinMax",)
    assert greedy.profiles == ()


def test_a_fairness_run_uses_the_weaker_specification_and_one_property() -> None:
    spec = question("Spec")
    assert spec.config.names("SPECIFICATION") == ("Spec",)
    assert spec.config.names("PROPERTY") == ("Takes",)


def test_state_probes_share_one_run_and_an_action_probe_has_its_own_run() -> None:
    assert question("probes").probes == ("NeverFull", "NeverTwo")
    assert question("NeverDropped").config.names("PROPERTY") == ("NeverDropped",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "states = 57\n",
            "",
            r"\[Counter\] Counter\.cfg: a run that holds has recorded states|states and depth",
        ),
        ('module = "Counter"', "", r"missing required field `module`"),
        ('"smoke"', '"smoky"', r"Invalid enum value 'smoky'.*profiles"),
        ("workers = 1", "worker = 1", r"unknown field `worker`"),
        ("Counter.cfg", "Lost.cfg", r"\[Counter\]: there is no Lost\.cfg in tla/"),
        ('Greedy = "WithinMax"', 'Greedy = "WithinMax"\nLost = "TypeOK"', r"there is no Lost\.cfg"),
        ('Spec = "Takes"', 'Greedy = "Takes"', r"\[Counter\]: Greedy appears twice"),
        ("[Counter]", "[Counter", r"models\.toml"),
    ],
)
def test_the_error_for_an_invalid_models_toml_names_the_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    (tmp_path / "tla").symlink_to(COUNTER.parent / "tla")
    text = COUNTER.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "models.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ModelFileError, match=message) as caught:
        load(tmp_path / "models.toml")
    assert str(tmp_path) in str(caught.value)


def test_a_missing_models_toml_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="No such file"):
        load(tmp_path / "models.toml")


def test_models_toml_has_the_mutants_listed_in_the_catalogue() -> None:
    names = {invariant.name for invariant in catalogue().values()}
    asked = [question for questions in load().questions.values() for question in questions]
    mutants = [question for question in asked if question.kind is Kind.MUTANT]
    models = {question.name: question.model for question in reversed(mutants)}
    listed = {
        (model, mutant, invariant.name)
        for invariant in catalogue().values()
        for mutant in invariant.mutants.get("tla", ())
        for model in [models.get(mutant)]
        if f"{model}!{invariant.name}" in invariant.checks["tla"]
    }
    checked = {
        (question.model, question.name, question.violates)
        for question in mutants
        if question.violates in names  # Guarantee has properties of its own, for the matrix.
    }
    assert checked == listed


def test_each_tla_check_of_the_catalogue_is_part_of_a_ci_run() -> None:
    checked = {
        f"{question.model}!{name}"
        for questions in load().questions.values()
        for question in questions
        if question.kind is Kind.CHECK and question.violates is None and "ci" in question.profiles
        for name in question.config.properties
    }
    listed = {check for invariant in catalogue().values() for check in invariant.checks.get("tla", ())}
    assert listed <= checked


def test_each_mutant_module_and_each_configuration_file_is_used_by_a_run() -> None:
    models = load()
    checked = {question.module for questions in models.questions.values() for question in questions}
    mutants = {file.stem for file in models.libraries[1].glob("*.tla")}
    assert mutants <= checked
    names = {question.name for questions in models.questions.values() for question in questions}
    # The constants of probes and fairness runs may be in a separate file. The matrix uses two more.
    tables = tomllib.loads(models.file.read_text(encoding="utf-8")).values()
    names |= {table["cfg"].removesuffix(".cfg") for table in tables} | {"GuaranteeCells", "GuaranteeDamage"}
    files = {file.stem for folder in models.libraries for file in folder.glob("*.cfg")}
    assert files <= names


def test_no_action_or_property_is_excluded_from_every_ci_run() -> None:
    for model, questions in load().questions.items():
        runs = [question for question in questions if question.kind is Kind.VACUITY]
        everywhere = set.intersection(*(set(run.never) for run in runs)) if runs else set()
        assert not everywhere, f"{model}: no run of ci checks {everywhere}"


def test_a_run_may_have_no_recorded_size(tmp_path: Path) -> None:
    (tmp_path / "tla").symlink_to(COUNTER.parent / "tla")
    text = COUNTER.read_text(encoding="utf-8").replace("states = 57\ndepth = 9\n", "")
    (tmp_path / "models.toml").write_text(text, encoding="utf-8")
    run = load(tmp_path / "models.toml").questions["Counter"][0]
    assert (run.states, run.depth) == (None, None)


def test_each_of_our_runs_that_must_hold_has_a_recorded_size() -> None:
    checks = [
        each
        for questions in load().questions.values()
        for each in questions
        if each.kind is Kind.CHECK and each.violates is None
    ]
    assert [each.name for each in checks if each.states is None or each.depth is None] == []
