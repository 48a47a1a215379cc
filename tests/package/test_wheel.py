"""Tests the wheel: its content, and that its commands work with only its requirements installed."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.package.environments import ROOT, Environment, build_sdist, build_wheel, environment, serving

pytestmark = pytest.mark.xdist_group("package")

PARTS = ("spec", "reference", "impl", "conformance", "fuzz", "spark_audit", "report")

_FOLDERS_LEFT_OUT = (
    "pages", "adapters/client_calls", "adapters/inspections", "adapters/store_copies",
    "adapters/scripted_members",
    "mutation",
    "client_scenarios",
    "history/injected",
)  # fmt: skip
_STEPPED = "conformance/subjects/stepped"
_STEPPED_AND_THERE = (
    "__init__", "crashing_store", "delayed_requests", "model_targets", "replicating_pair", "step_loop",
    "traced_client",
)  # fmt: skip
LEFT_OUT = {
    "mqproof/spec/mutation_scores.json",
    "mqproof/conformance/behaviours/corpus/README.md",
    "mqproof/conformance/answers/file_rules.py",
    "mqproof/conformance/bench/kill_cycles.py",
    "mqproof/reference/proofs/state_correspondence.py",
    "mqproof/reference/proofs/step_correspondence.py",
    "mqproof/fuzz/fault_page.py",
    *(f"mqproof/spark_audit/quality/{file.name}" for file in (ROOT / "spark_audit" / "quality").glob("*.*")),
    *(
        f"mqproof/conformance/mutants/{file.name}"
        for names in ("*inspections.py", "inspected_*.py")
        for file in (ROOT / "conformance" / "mutants").glob(names)
    ),
    *(
        f"mqproof/conformance/{folder}/{file.name}"
        for folder in _FOLDERS_LEFT_OUT
        for file in (ROOT / "conformance" / folder).glob("*.*")
    ),
    *(
        f"mqproof/{_STEPPED}/{file.name}"
        for file in (ROOT / _STEPPED).glob("*.py")
        if file.stem not in _STEPPED_AND_THERE
    ),
}
"""The results of our own campaigns, which only our documentation shows; what writes its pages; and what
examines our own client, servers, proofs and audit, whose code a user does not change.
"""

_APPLICATION = """
import asyncio, impl.orders, report, spec
from mqproof import Producer, Sent, connect, new_message

async def main(namesrv: str) -> None:
    async with connect(namesrv) as session:
        outcome = await Producer(session).send(new_message("Orders", impl.orders.BODY))
        assert isinstance(outcome, Sent), outcome
        print(report.NAME, spec.NAME, outcome.status)

import sys
asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """Create the folder of an application whose own modules have the names of our folders."""
    (tmp_path / "impl").mkdir()
    (tmp_path / "impl" / "__init__.py").touch()
    (tmp_path / "impl" / "orders.py").write_text("BODY = b'one coffee'\n")
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "__init__.py").write_text("NAME = 'its spec'\n")
    (tmp_path / "report.py").write_text("NAME = 'its report'\n")
    (tmp_path / "application.py").write_text(_APPLICATION)
    return tmp_path


def test_the_wheel_adds_only_mqproof_and_its_metadata(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        links = [each.filename for each in archive.infolist() if (each.external_attr >> 28) == 0o12]
    print(*sorted(tops))
    assert tops == {"mqproof", wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}
    assert links == []


def test_the_wheel_has_every_file_of_the_parts(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    ours = {
        f"mqproof/{path.relative_to(ROOT)}"
        for part in PARTS
        for path in (ROOT / part).rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    assert ours - inside == LEFT_OUT
    assert "mqproof/py.typed" in inside
    kinds = {Path(name).suffix for name in inside}
    assert kinds >= {".tla", ".cfg", ".toml", ".html", ".java", ".properties", ".xz"}


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    again = build_wheel(tmp_path / "wheel", build_sdist(tmp_path))
    with ZipFile(wheel) as first, ZipFile(again) as second:
        assert set(first.namelist()) == set(second.namelist())


def test_servers_and_clients_work_beside_an_application_with_folders_of_the_same_names(
    bare: Environment, application: Path
) -> None:
    before = bare.files()
    with serving(bare, application) as namesrv:
        where = ("--namesrv", namesrv, "--topic", "Orders")
        ran = bare.run(bare.python, "application.py", namesrv, cwd=application)
        assert (ran.returncode, ran.stdout) == (0, "its report its spec SEND_OK\n"), ran.stderr
        sent = bare.run(
            bare.python, "-m", "mqproof", "send", *where, "--body", "x", "--count", "9", cwd=application
        )
        assert sent.returncode == 0, sent.stderr
        got = bare.run(bare.command, "consume", *where, "--group", "G", "--from-min", cwd=application)
        assert got.returncode == 0, got.stderr
        assert len(got.stdout.splitlines()) == 10
        listed = bare.run(bare.command, "admin", "clusterList", "-n", namesrv, cwd=application)
        assert listed.returncode == 0, listed.stderr
    assert bare.run(bare.command, "store", "--help", cwd=application).returncode == 0
    assert bare.files() == before  # no command writes into the installed package


@pytest.mark.parametrize(
    ("command", "extra"),
    [("audit run", "audit"), ("check", "check"), ("conform", "conform"), ("demo", "all"), ("prove", "check")],
)
def test_a_command_without_its_extra_names_it(
    bare: Environment, tmp_path: Path, command: str, extra: str
) -> None:
    ran = bare.run(bare.command, *command.split(), cwd=tmp_path)
    line = f"mqproof {command.split()[0]} needs: pip install 'mqproof[{extra}]'\n"
    assert (ran.returncode, ran.stderr, ran.stdout) == (4, line, "")


@pytest.mark.parametrize("arguments", [["--help"], ["coverage"], ["audit", "--help"], ["bench", "--help"]])
def test_help_and_coverage_need_no_extra(bare: Environment, tmp_path: Path, arguments: list[str]) -> None:
    assert bare.run(bare.command, *arguments, cwd=tmp_path).returncode == 0


def test_conform_works_with_its_extra(wheel: Path, tmp_path: Path) -> None:
    made = environment(tmp_path / "environment", wheel, "conform")
    before = made.files()
    ran = made.run(
        made.command, "conform", "--target", "impl", "--suite", "flush", "--examples", "2", "--id", "FLUSH-4",
        "--report", "report.html", cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "report.html").stat().st_size > 1000
    assert made.files() == before


@pytest.mark.deep("copies Z3 and a Java, and runs TLC")
def test_check_and_prove_work_with_their_extra(wheel: Path, tmp_path: Path) -> None:
    made = environment(tmp_path / "environment", wheel, "check")
    before = made.files()
    for command in (["check", "Flush", "--profile", "smoke"], ["explore", "Flush", "--profile", "smoke"]):
        ran = made.run(made.command, *command, cwd=tmp_path, timeout=600)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert made.files() == before


@pytest.mark.deep("copies Matplotlib and DuckDB")
def test_a_small_event_log_is_audited_without_spark(wheel: Path, tmp_path: Path) -> None:
    made = environment(tmp_path / "environment", wheel, "audit-local")
    before = made.files()
    for module in ("pyspark", "pyarrow"):
        assert made.run(made.python, "-c", f"import {module}", cwd=tmp_path).returncode == 1
    (tmp_path / "log.ndjson").write_text(
        '{"ts":1,"seq":0,"node":"broker","kind":"recover","commit_offset":0}\n'
        '{"ts":2,"seq":0,"node":"c","kind":"deliver","msg_id":"m","topic":"t","queue_id":0,"queue_offset":0,'
        '"group":"g","client":"c"}\n'
    )
    audited = made.run(
        made.command, "audit", "run", "log.ndjson", "--out", "audit", cwd=tmp_path, timeout=600
    )
    assert audited.returncode == 1, audited.stdout + audited.stderr
    assert "phantom" in (tmp_path / "audit" / "report.html").read_text()
    ran = made.run(made.command, "audit", "run", "log.ndjson", "--engine", "spark", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (4, "mqproof audit needs: pip install 'mqproof[audit]'\n")
    assert made.files() == before


@pytest.mark.deep("copies Spark, and starts it")
def test_audit_works_with_its_extra(wheel: Path, tmp_path: Path) -> None:
    made = environment(tmp_path / "environment", wheel, "audit")
    before = made.files()
    generate = ("generate", "--count", "20000", "--out", "log", "--anomaly", "lost=2")
    generated = made.run(made.command, "audit", *generate, cwd=tmp_path, timeout=600)
    assert generated.returncode == 0, generated.stderr
    run = ("run", "--events", "log", "--out", "audit", "--json", "audit.json")
    audited = made.run(made.command, "audit", *run, cwd=tmp_path, timeout=600)
    assert audited.returncode == 1, audited.stdout + audited.stderr
    assert json.loads((tmp_path / "audit.json").read_text())
    assert made.files() == before
