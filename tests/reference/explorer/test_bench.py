"""The benchmark of the explorer runs real commands, compares counts and times, and reports failures."""

from pathlib import Path

import pytest

from mqproof.reference.explorer import bench
from mqproof.reference.explorer.bench import BenchError, measure, table
from mqproof.spec.model_file import load


def test_a_round_measures_tlc_and_the_explorer() -> None:
    (question,) = (q for q in load().questions["Flush"] if q.name == "MCFlush_liveness_smoke")
    stages: list[str] = []
    result = measure([question], {"explorer 1": ("--workers", "1")}, 1, stages.append)
    (model,) = result["models"]
    assert model["states"] == 986
    assert list(model["sides"]) == ["tlc", "explorer 1"]
    assert all(side["seconds"] > 0 and side["bytes_per_state"] > 0 for side in model["sides"].values())
    assert result["tlc_start_seconds"] > 0
    assert stages == [
        "MCFlush_liveness_smoke, tlc, round 1/1",
        "MCFlush_liveness_smoke, explorer 1, round 1/1",
    ]
    for label in ("Flush MCFlush_liveness_smoke: 986 states", "TLC, 2 workers", "explorer 1", "slower than"):
        assert label in table(result)


def test_a_model_on_which_the_explorer_is_slower_than_tlc_is_named() -> None:
    def side(seconds: float) -> dict[str, object]:
        return {"seconds": seconds, "states_per_second": 1, "bytes_per_state": None}

    sides = {"tlc": side(2.0), "explorer 1": side(4.0), "spark local[2]": side(1.0)}
    model = {"model": "M", "run": "MCM_ci", "tlc_workers": 2, "states": 7, "sides": sides}
    result = {"machine": "a machine", "rounds": 1, "tlc_start_seconds": 1.0, "models": [model]}
    assert table(result).endswith("The explorer is slower than TLC: MCM_ci")
    assert "0.50" in table(result)


def test_a_model_that_fails_does_not_end_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = load().questions["Flush"][:2]
    measured = {"tlc": [bench.Run(2.0, 7, None)], "explorer 1": [bench.Run(1.0, 7, None)]}

    def fail_on_first(question: object, *_: object) -> dict[str, list[bench.Run]]:
        if question is first:
            raise BenchError("out of memory")
        return measured

    monkeypatch.setattr(bench, "_measured", fail_on_first)
    monkeypatch.setattr(bench, "_tlc_start", lambda _: 1.0)
    result = measure([first, second], {"explorer 1": ("--workers", "1")}, 1, lambda _: None)
    assert result["failed"] == ["out of memory"]
    assert [model["run"] for model in result["models"]] == [second.name]


def test_the_error_for_a_failing_command_has_its_exit_code_and_message(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="exit code 2: mqproof explore: no reference model 'Flood'"):
        bench._command(("explore", "Flood"), tmp_path)
