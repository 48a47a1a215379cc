"""Goal: the contract of `mqproof check` and `mqproof coverage`: exit codes, one-line errors, JSON keys."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import ANY

import pytest
from typer.testing import CliRunner, Result

from mqproof.spec import java
from mqproof.spec.cli import app

COUNTER = Path(__file__).parent / "models.toml"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def check(*arguments: str, models: Path = COUNTER) -> Result:
    return invoke("check", "--models", str(models), *arguments)


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A models.toml with properties that Counter violates."""
    (tmp_path / "tla").symlink_to(COUNTER.parent / "tla")
    text = COUNTER.read_text(encoding="utf-8")
    text = text.replace('violates = "Settles"', "states = 57\ndepth = 9")
    (tmp_path / "models.toml").write_text(text, encoding="utf-8")
    return tmp_path / "models.toml"


def test_check_of_a_held_model_exits_0_with_a_row_per_run_and_a_json_report(tmp_path: Path) -> None:
    result = check("Counter", "--json", str(tmp_path / "out.json"))
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if line.startswith("Counter ")] == [
        ["Counter", "held", "57", "9", ANY]
    ]
    assert "TypeOK" not in result.stdout
    assert "Counter.Counter TypeOK" in check("Counter", "--properties").stdout
    assert "1/1 Counter Counter: held, 57 states" in result.stderr
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert document["verdict"] == "held"
    assert document["tables"][0]["columns"][:4] == ["model", "run", "kind", "verdict"]
    assert document["tables"][0]["rows"][0][:5] == ["Counter", "Counter", "check", "held", "57"]


def test_check_of_a_violated_model_exits_1_and_prints_the_steps_and_the_replay_command(changed: Path) -> None:
    result = check("--only", "CounterSettles", models=changed)
    assert result.exit_code == 1
    assert "Counterexample of Counter CounterSettles" in result.stdout
    assert "owner  NoNode -> n" in result.stdout
    failure = next(line for line in result.stdout.splitlines() if "Settles (tla)" in line)
    assert failure.endswith(f"replay: mqproof check Counter --only CounterSettles --models {changed}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Nope",), "no model 'Nope'; there are Counter"),
        (("--only", "Nope"), "--only Nope: no such run; there are Counter, CounterFair"),
        (("--profile", "deep", "Counter", "--only", "x"), "--only x: no such run"),
        (("--profile", "huge"), "--profile huge: expected one of smoke, mutation, ci, deep"),
        (("--models", "/no/models.toml"), "/no/models.toml: "),
        (("--json", f"{COUNTER}/in/a/file", "--only", "NeverDropped"), f"--json {COUNTER}/in/a/file: "),
    ],
)
def test_a_wrong_argument_exits_2_with_a_one_line_message(arguments: tuple[str, ...], message: str) -> None:
    result = check(*arguments)
    assert result.exit_code == 2
    messages = [line for line in result.stderr.splitlines() if line.startswith("mqproof: ")]
    assert len(messages) == 1
    assert message in messages[0]
    assert "Traceback" not in result.stderr


def test_a_module_with_a_syntax_error_exits_2_and_prints_file_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "tla").mkdir()
    (tmp_path / "tla" / "Bad.tla").write_text("---- MODULE Bad ----\nInit == x = 0\n====\n", encoding="utf-8")
    (tmp_path / "tla" / "Bad.cfg").write_text("INIT Init\nNEXT Init\n", encoding="utf-8")
    runs = '[[Bad.runs]]\ncfg = "Bad.cfg"\nprofiles = ["smoke"]\nviolates = "X"\n'
    text = '[Bad]\nabout = ""\nmodule = "Bad"\ncfg = "Bad.cfg"\n' + runs
    (tmp_path / "models.toml").write_text(text, encoding="utf-8")
    result = check(models=tmp_path / "models.toml")
    assert result.exit_code == 2
    assert "mqproof: Bad Bad: TLC: parse error: Bad.tla:2:9: Unknown operator: `x'." in result.stderr


def test_check_exits_4_if_java_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_wheel_executable", lambda: None)
    java.find_java.cache_clear()
    try:
        result = check("Counter")
    finally:
        java.find_java.cache_clear()
    assert result.exit_code == 4
    assert "Java missing: no java on the PATH" in result.stderr


def test_check_exits_3_if_the_time_limit_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "tla").symlink_to(COUNTER.parent / "tla")
    text = COUNTER.read_text(encoding="utf-8").replace("depth = 9\nworkers = 1", "depth = 9\nseconds_max = 0")
    (tmp_path / "models.toml").write_text(text, encoding="utf-8")
    result = check("--only", "CounterFair", models=tmp_path / "models.toml")
    assert result.exit_code == 3
    assert "no verdict within 0 seconds" in result.stdout


def test_terminating_check_also_ends_tlc(tmp_path: Path) -> None:
    (tmp_path / "tla").mkdir()
    (tmp_path / "work").mkdir()
    source = "---- MODULE Long ----\nEXTENDS Naturals\nVARIABLE x\nInit == x = 0\nNext == x' = x + 1\n====\n"
    (tmp_path / "tla" / "Long.tla").write_text(source, encoding="utf-8")
    (tmp_path / "tla" / "Long.cfg").write_text("INIT Init\nNEXT Next\n", encoding="utf-8")
    runs = '[[Long.runs]]\ncfg = "Long.cfg"\nprofiles = ["smoke"]\nviolates = "X"\nseconds_max = 60\n'
    text = '[Long]\nabout = ""\nmodule = "Long"\ncfg = "Long.cfg"\n' + runs
    (tmp_path / "models.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", "from mqproof.spec.cli import app; app()", "check"]
    command += ["--models", str(tmp_path / "models.toml")]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "work")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # TLC writes its queue and its fingerprints into this folder while it explores.
        deadline = time.monotonic() + 60
        while not list((tmp_path / "work").glob("mqproof-tlc-*/meta/*/*")):
            assert time.monotonic() < deadline, "TLC did not start within 60 seconds"
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait(timeout=120) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    assert list((tmp_path / "work").iterdir()) == []


def test_coverage_prints_one_row_per_invariant_and_keeps_its_json_keys(tmp_path: Path) -> None:
    result = invoke("coverage", "--json", str(tmp_path / "coverage.json"))
    assert result.exit_code == 0
    assert "FLUSH-1 SyncAckedDurable" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    in_detail = invoke("coverage", "--details")
    assert in_detail.exit_code == 0
    assert "FLUSH-1 SyncAckedDurable" in in_detail.stdout
    assert "Flush!SyncAckedDurable, Replication!SyncAckedDurable" in in_detail.stdout
    assert "  tla          n/a: " in in_detail.stdout[in_detail.stdout.index("SPEC-1 ") :]
    document = json.loads((tmp_path / "coverage.json").read_text(encoding="utf-8"))
    assert set(document) == {"schema", "layers", "totals", "invariants"}
    rows = {row["id"]: row["cells"]["tla"] for row in document["invariants"]}
    assert rows["FLUSH-1"]["state"] == "checked"
    assert rows["FLUSH-1"]["by"] == "Flush!SyncAckedDurable, Replication!SyncAckedDurable"
    assert rows["SPEC-1"]["state"] == "n/a"
    assert rows["SPEC-1"]["why"]
    cells = len(document["layers"]) * len(document["invariants"])
    assert sum(document["totals"][state] for state in ("checked", "n/a", "open")) == cells


def test_coverage_shows_only_the_requested_invariants_and_layers(tmp_path: Path) -> None:
    one = invoke("coverage", "--id", "FLUSH-1", "--layer", "fuzz", "--json", str(tmp_path / "one.json"))
    assert one.exit_code == 0
    assert one.stdout.startswith("FLUSH-1 SyncAckedDurable (safety)\n")
    assert "audit" not in one.stdout
    document = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    assert [row["id"] for row in document["invariants"]] == ["FLUSH-1"]
    assert invoke("coverage", "--id", "FLUSH-*").stdout.count("(safety)") > 3
    is_open = invoke("coverage", "--open")
    assert is_open.exit_code == 0
    *lines, counts = is_open.stdout.splitlines()
    rows = lines[1 : lines.index("")] if lines else []
    assert all(" open" in row for row in rows)
    assert counts.startswith(f"{len(rows)} invariants: ")
    assert f", {sum(row.count(' open') for row in rows)} open, " in counts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--id", "NOPE-1"), "mqproof: --id NOPE-1: no invariant has such an id or name\n"),
        (("--layer", "java"), "mqproof: --layer java: expected one of tla, reference, "),
    ],
)
def test_coverage_exits_2_for_an_unknown_invariant_or_layer(arguments: tuple[str, ...], message: str) -> None:
    result = invoke("coverage", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


def test_the_drawing_of_an_expected_counterexample_names_the_violated_property(tmp_path: Path) -> None:
    file = tmp_path / "settles.svg"
    assert check("--only", "CounterSettles", "--draw", str(file)).exit_code == 0
    assert "Settles is violated" in file.read_text(encoding="utf-8")


def test_a_single_probe_can_be_checked_and_drawn(tmp_path: Path) -> None:
    file = tmp_path / "probe.svg"
    result = check("--only", "NeverFull", "--draw", str(file))
    assert result.exit_code == 0
    assert "As it must be" in file.read_text(encoding="utf-8")


def test_a_simulated_behaviour_has_the_requested_length_and_is_repeatable(tmp_path: Path) -> None:
    file = tmp_path / "behaviour.svg"
    arguments = ("simulate", "Counter", "--depth", "4", "--models", str(COUNTER))
    result = invoke(*arguments, "--draw", str(file))
    assert result.exit_code == 0
    assert "  4  " in result.stdout
    assert "  5  " not in result.stdout
    assert result.stdout == invoke(*arguments).stdout
    assert file.read_text(encoding="utf-8").startswith("<svg")


def test_a_run_without_recorded_size_prints_the_size_to_record(tmp_path: Path) -> None:
    (tmp_path / "tla").symlink_to(COUNTER.parent / "tla")
    text = COUNTER.read_text(encoding="utf-8").replace("states = 57\ndepth = 9\n", "", 1)
    (tmp_path / "models.toml").write_text(text, encoding="utf-8")
    result = check("Counter", models=tmp_path / "models.toml")
    assert result.exit_code == 0
    assert "nothing recorded; record in models.toml: states = 57, depth = 9" in result.stdout
