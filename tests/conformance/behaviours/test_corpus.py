"""The behaviours in the repository match the models, and other programs can read them."""

import itertools
import json
from pathlib import Path

import pytest

from mqproof.conformance.behaviours.corpus import CORPUS, CorpusError, file_of, lines, read, read_lines
from mqproof.reference.models import MODELS


@pytest.mark.parametrize("model", MODELS)
def test_the_corpus_in_the_repository_matches_the_model(model: str) -> None:
    kept = read_lines(file_of(model))
    for made, line in itertools.zip_longest(lines(model), kept):
        assert made == line, "mqproof behaviours --out conformance/behaviours/corpus"


def test_there_is_a_file_for_each_model() -> None:
    assert {file.name.partition(".")[0] for file in CORPUS.glob("*.xz")} == set(MODELS)


def test_states_are_written_as_the_changes_of_each_step() -> None:
    script = next(read(read_lines(file_of("Delivery")), "Delivery"))
    states = list(script.states())
    assert states[0] == script.initial
    assert len(states) == len(script.steps) + 1
    for state, step in zip(states[1:], script.steps, strict=True):
        assert step.changes.items() <= state.items()


def test_the_lines_match_their_schema() -> None:
    """Checks by hand the part of the schema that a reader depends on."""
    schema = json.loads((CORPUS / "schema.json").read_text(encoding="utf-8"))
    head, steps, *rows = map(json.loads, read_lines(file_of("Election")))
    assert set(head) == {*schema["$defs"]["head"]["required"], "steps"}
    assert set(steps) == set(schema["$defs"]["steps"]["required"])
    assert all(
        isinstance(s[0], str) and isinstance(s[1], list) and isinstance(s[2], dict) for s in steps["steps"]
    )
    for row in rows:
        assert set(row) <= set(schema["$defs"]["behaviour"]["properties"])
        assert all(0 <= step < len(steps["steps"]) for step in row["steps"])
        if "disabled" in row:
            at, actions = row["disabled"]
            assert 0 <= at <= len(row["steps"])
            assert all(isinstance(name, str) and isinstance(values, list) for name, values in actions)


def test_the_program_in_the_readme_reads_the_corpus() -> None:
    """Runs the program of the README unchanged."""
    text = (CORPUS / "README.md").read_text(encoding="utf-8")
    program = text.partition("```python\n")[2].partition("```")[0]
    program = program.replace("Flush.jsonl.xz", str(file_of("Delivery")))
    names: dict[str, object] = {}
    exec(program, names)
    assert names["state"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "log:1: not JSON"),
        ('{"schema":1}', "log:1: schema 1, 2 expected"),
        ('{"schema":2,"initial":[{}]}', "log:1: not a head: the fields model and initial are expected"),
        ('HEAD\n{"steps":[["a"]]}', "log:2: not the list of steps"),
        ('HEAD\n{"initial":0}', "log:2: not the list of steps"),
        ('HEAD\n{"steps":[]}\n{"initial":3,"steps":[]}', "log:3: not a behaviour"),
        ('HEAD\n{"steps":[]}\n{"initial":0,"steps":[0]}', "log:3: not a behaviour"),
        ('HEAD\n{"steps":[]}\n[]', "log:3: an object expected"),
    ],
)
def test_an_invalid_line_gives_one_error(text: str, said: str) -> None:
    head = next(iter(read_lines(file_of("Delivery"))))
    with pytest.raises(CorpusError, match=said):
        list(read(text.replace("HEAD", head).splitlines(), "log"))


def test_a_damaged_file_gives_one_error(tmp_path: Path) -> None:
    path = tmp_path / "Flush.jsonl.xz"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(CorpusError, match="Flush"):
        read_lines(path)


def test_behaviours_of_a_version_with_other_variables_are_refused() -> None:
    head, *rest = itertools.islice(read_lines(file_of("OrderLock")), 3)
    with pytest.raises(
        CorpusError, match=r"OrderLock:1: variables of another version \(lost_lock, robbed differ\)"
    ):
        list(read([head.replace("lost_lock", "robbed"), *rest], "OrderLock"))
