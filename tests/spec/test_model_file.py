"""Goal: an incomplete models.toml is refused, and ours checks every property of the catalogue."""

import tomllib
from pathlib import Path

import pytest

from mqproof.spec.catalogue import catalogue
from mqproof.spec.model_file import Kind, ModelFileError, Question, load

COUNTER = Path(__file__).parent / "models.toml"


def question(name: str) -> Question:
    return next(question for question in load(COUNTER).questions["Counter"] if question.name == name)


def test_a_mutant_is_asked_only_for_the_property_named_for_it() -> None:
    greedy = question("Greedy")
    assert (greedy.kind, greedy.module, greedy.violates) == (Kind.MUTANT, "Greedy", "WithinMax")
    assert greedy.config.properties == ("WithinMax",)
    assert greedy.profiles == ()


def test_a_fairness_run_has_the_weaker_specification_and_one_property() -> None:
    spec = question("Spec")
    assert spec.config.names("SPECIFICATION") == ("Spec",)
    assert spec.config.names("PROPERTY") == ("Takes",)


def test_probes_share_a_run_and_an_action_probe_has_its_own() -> None:
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
def test_a_bad_file_is_refused_with_the_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "tla").symlink_to(COUNTER.parent / "tla")
    text = COUNTER.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "models.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ModelFileError, match=message) as caught:
        load(tmp_path / "models.toml")
    assert str(tmp_path) in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="No such file"):
        load(tmp_path / "models.toml")


def _model_of(mutant: str) -> str | None:
    for model, questions in load().questions.items():
        if any(question.kind is Kind.MUTANT and question.name == mutant for question in questions):
            return model
    return None


def test_our_mutants_are_those_of_the_catalogue() -> None:
    names = {invariant.name for invariant in catalogue().values()}
    promised = {
        (model, mutant, invariant.name)
        for invariant in catalogue().values()
        for mutant in invariant.mutants.get("tla", ())
        for model in [_model_of(mutant)]
        if f"{model}!{invariant.name}" in invariant.checks["tla"]
    }
    asked = {
        (question.model, question.name, question.violates)
        for questions in load().questions.values()
        for question in questions
        # Guarantee has properties of its own, for the matrix.
        if question.kind is Kind.MUTANT and question.violates in names
    }
    assert asked == promised


def test_every_tla_check_of_the_catalogue_is_asked_in_ci() -> None:
    asked = {
        f"{question.model}!{name}"
        for questions in load().questions.values()
        for question in questions
        if question.kind is Kind.CHECK and question.violates is None and "ci" in question.profiles
        for name in question.config.properties
    }
    promised = {check for invariant in catalogue().values() for check in invariant.checks.get("tla", ())}
    assert promised <= asked


def test_every_module_and_configuration_of_ours_is_asked() -> None:
    models = load()
    asked = {question.module for questions in models.questions.values() for question in questions}
    mutants = {file.stem for file in models.libraries[1].glob("*.tla")}
    assert mutants <= asked
    names = {question.name for questions in models.questions.values() for question in questions}
    # The constants of probes and fairness runs may be in a separate file; the matrix uses the cells.
    tables = tomllib.loads(models.file.read_text(encoding="utf-8")).values()
    names |= {table["cfg"].removesuffix(".cfg") for table in tables} | {"GuaranteeCells"}
    files = {file.stem for folder in models.libraries for file in folder.glob("*.cfg")}
    assert files <= names


def test_an_exclusion_of_one_ci_run_occurs_in_another() -> None:
    for model, questions in load().questions.items():
        runs = [question for question in questions if question.kind is Kind.VACUITY]
        everywhere = set.intersection(*(set(run.never) for run in runs)) if runs else set()
        assert not everywhere, f"{model}: no run of ci puts {everywhere} to the test"


def test_a_run_without_recorded_size_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "tla").symlink_to(COUNTER.parent / "tla")
    text = COUNTER.read_text(encoding="utf-8").replace("states = 57\ndepth = 9\n", "")
    (tmp_path / "models.toml").write_text(text, encoding="utf-8")
    first = load(tmp_path / "models.toml").questions["Counter"][0]
    assert (first.states, first.depth) == (None, None)


def test_every_run_of_ours_that_must_hold_records_its_size() -> None:
    checks = [
        each
        for questions in load().questions.values()
        for each in questions
        if each.kind is Kind.CHECK and each.violates is None
    ]
    assert [each.name for each in checks if each.states is None or each.depth is None] == []
