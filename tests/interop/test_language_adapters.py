"""The adapters in Java and Go run the suites flush, offsets and delivery against our broker; all hold."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, class_path, java, program
from mqproof.conformance.commands.conform import app
from mqproof.conformance.hosts.processes import Cluster
from mqproof.report import json_file
from mqproof.report.model import Verdict
from tests.docs.console import ROOT

pytestmark = pytest.mark.apache


@pytest.fixture(scope="module", params=["java", "go"])
def adapter(request: pytest.FixtureRequest, ours: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the target of an adapter of our broker."""
    examples = ROOT / "examples"
    try:
        if request.param == "java":
            words = [java(), "-cp", class_path("5.5.0"), str(examples / "adapter_java" / "Adapter.java")]
        else:
            words = [str(tmp_path_factory.mktemp("go") / "adapter")]
            source = shutil.copytree(examples / "adapter_go", tmp_path_factory.mktemp("source") / "adapter")
            build = [program("go", "install Go"), "build", "-o", words[0], "."]
            subprocess.run(build, cwd=source, check=True, timeout=600)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    return f"stdio:{shlex.join([*words, f'127.0.0.1:{ours.broker_port}'])}"


@pytest.mark.parametrize("suite", ["flush", "offsets", "delivery"])
def test_a_suite_holds_through_the_adapter(adapter: str, suite: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    run = CliRunner().invoke(
        app, ["conform", "--target", adapter, "--suite", suite, "--examples", "5", "--json", str(file)]
    )
    verdicts = {one.verdict for one in json_file.from_json(file.read_text()).results}
    assert Verdict.HELD in verdicts, run.output
    assert not verdicts & {Verdict.VIOLATED}, run.output


def test_the_checklist_holds(adapter: str) -> None:
    run = CliRunner().invoke(app, ["conform", "check-adapter", adapter])
    assert run.exit_code == 0, run.output
