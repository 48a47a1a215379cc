"""`mqproof behaviours`: its output, its files and its drawings."""

import json
import lzma
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from mqproof.conformance.behaviours.corpus import file_of, lines, read_lines
from mqproof.conformance.commands.model_behaviours import app
from mqproof.conformance.subjects.stepped.model_targets import NOT_STEPPED, resolve
from mqproof.reference.models import MODELS


def _run(arguments: list[str]) -> Result:
    return CliRunner().invoke(app, ["behaviours", *arguments])


def test_the_coverage_of_a_target_is_printed_drawn_and_written(tmp_path: Path) -> None:
    result_file, drawn = tmp_path / "result.json", tmp_path / "graph.svg"
    arguments = [
        "Election",
        "--target",
        "reference",
        "--every",
        "40",
        "--json",
        str(result_file),
        "--draw",
        str(drawn),
    ]
    ended = _run(arguments)
    assert ended.exit_code == 0, ended.output
    (result,) = json.loads(result_file.read_text())["results"]
    assert result["verdict"] == "held"
    assert 0 < result["counts"]["steps"] < result["counts"]["steps_of"] == 3254
    assert ElementTree.fromstring(drawn.read_text()).tag.endswith("svg")


@pytest.mark.parametrize("model", NOT_STEPPED)
def test_a_target_without_steps_is_not_tested_instead_of_held(model: str) -> None:
    ended = _run([model, "--target", "impl"])
    assert ended.exit_code == 3
    assert "not tested" in " ".join(ended.output.split())


def test_a_model_has_a_stepped_target_or_a_stated_reason() -> None:
    assert {model for model in MODELS if resolve("impl", model) is None} == set(NOT_STEPPED)


def test_a_wrong_corpus_is_violated(tmp_path: Path) -> None:
    """One step has another result than the model."""
    text = read_lines(file_of("Delivery"))
    different = json.loads(text[1])
    different["steps"][0][2] = {"serving": "perhaps"}
    (tmp_path / "lies").mkdir()
    data = "\n".join([text[0], json.dumps(different), text[2]]).encode()
    file_of("Delivery", tmp_path / "lies").write_bytes(lzma.compress(data))
    ended = _run(["Delivery", "--target", "reference", "--corpus", str(tmp_path / "lies")])
    assert ended.exit_code == 1
    assert "expected" in ended.output


def test_written_behaviours_match_the_generated_ones(tmp_path: Path) -> None:
    assert _run(["Election", "--out", str(tmp_path)]).exit_code == 0
    assert read_lines(file_of("Election", tmp_path)) == list(lines("Election"))


def test_wrong_use_gives_a_one_line_error() -> None:
    for arguments in (
        ["Nothing"],
        ["--target", "moon"],
        ["--draw", "x.svg"],
        ["Flush", "--corpus", "/nowhere"],
    ):
        ended = _run(arguments)
        assert ended.exit_code == 2, arguments
        assert len(ended.stderr.strip().splitlines()) <= 2
