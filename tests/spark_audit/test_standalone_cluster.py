"""The audit, incremental runs and the explorer on a real Spark cluster, whose executors may be killed.

The cluster has one master and two workers, each a process of its own with its own folder. Its results are
those of DuckDB, or of the explorer in one process.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest

from mqproof.report.model import Exit
from mqproof.spark_audit.generator.generate import LogRequest, write_in_process

pytestmark = [pytest.mark.deep("minutes of Spark, on three JVMs"), pytest.mark.timeout(3600)]

WAIT_S: Final = 600.0
RUN_S: Final = 1800.0
EXECUTOR: Final = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Cluster:
    url: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now: children of the workers."""
        lists = [file for each in self.workers for file in Path(f"/proc/{each.pid}/task").glob("*/children")]
        children = [pid for file in lists for pid in file.read_text().split()]
        return [
            int(pid)
            for pid in children
            if EXECUTOR in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        ]


@contextmanager
def _server(kind: str, folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start a server of Spark; yield it and its log."""
    folder.mkdir()
    home = Path(pyspark.__file__).parent
    log = folder / "log.txt"
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    server_class = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
    command = [str(home / "bin" / "spark-class"), server_class, "--host", "127.0.0.1", "--webui-port", "0"]
    with (
        log.open("wb") as written,
        subprocess.Popen([*command, *arguments], stdout=written, stderr=written, env=environment) as process,
    ):
        try:
            yield process, log
        finally:
            process.terminate()


def _logged(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + WAIT_S
    while not (found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))):
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8", errors="replace")[-2000:]
        time.sleep(0.2)
    return found[1]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as running:
        _, log = running.enter_context(_server("Master", folder / "master", "--port", "0"))
        url = _logged(log, r"Starting Spark master at (spark://\S+)")
        workers = []
        for number in range(2):
            place = folder / f"worker-{number}"
            sizes = ("--cores", "1", "--memory", "1g", "--work-dir", str(place / "work"))
            worker, log = running.enter_context(_server("Worker", place, *sizes, url))
            _logged(log, "(Successfully registered with master)")
            workers.append(worker)
        yield Cluster(url, tuple(workers))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    anomalies = {"lost": 3, "duplicate": 2, "phantom": 1, "offset_regression": 1}
    write_in_process(LogRequest(60_000, anomalies), folder / "events")
    return folder / "events"


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mqproof", *arguments]


def _run(*arguments: str) -> int:
    done = subprocess.run(_command(*arguments), timeout=RUN_S, capture_output=True, check=False)
    assert done.returncode in (Exit.HELD, Exit.VIOLATED), done.stderr.decode()[-3000:]
    return done.returncode


def _on(cluster: Cluster) -> tuple[str, ...]:
    conf = ("--conf", "spark.executor.memory=700m", "--conf", f"spark.pyspark.python={sys.executable}")
    return ("--master", cluster.url, "--memory", "700m", *conf)


def _results(file: Path) -> dict[str, Any]:
    report = json.loads(file.read_text(encoding="utf-8"))
    return {each["id"]: (each["verdict"], each["counts"]) for each in report["results"]}


@pytest.fixture(scope="module")
def expected(log: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("expected") / "local.json"
    assert _run("audit", "run", str(log), "--engine", "local", "--json", str(file)) == Exit.VIOLATED
    return _results(file)


def test_an_audit_on_the_cluster_has_the_results_of_duckdb(
    cluster: Cluster, log: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    _run("audit", "run", str(log), *_on(cluster), "--json", str(tmp_path / "r.json"))
    assert _results(tmp_path / "r.json") == expected


def test_the_loss_of_an_executor_changes_nothing(
    cluster: Cluster, log: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    command = _command("audit", "run", str(log), *_on(cluster), "--json", str(tmp_path / "r.json"))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "DELIV-1 " in line and (running := cluster.executors()):
                os.kill(running[0], signal.SIGKILL)
                break
        rest = process.stderr.read()
        assert process.wait(RUN_S) == Exit.VIOLATED, rest[-3000:]
    assert "DELIV-5 " in rest, "the executor was lost before the last checks"
    assert _results(tmp_path / "r.json") == expected


def test_incremental_runs_on_the_cluster_continue_a_state_of_duckdb(cluster: Cluster, tmp_path: Path) -> None:
    from tests.spark_audit.conftest import STEP_US, write_ndjson
    from tests.spark_audit.incremental.test_checkpoint import split_log

    found: dict[str, list[Any]] = {"local": [], "cluster": []}
    for number, rows in enumerate(split_log((0, 350 * STEP_US, 700 * STEP_US))):
        file = tmp_path / f"{number}.ndjson"
        file.write_bytes(write_ndjson(rows))
        for name, options in (
            ("local", ("--engine", "local")),
            ("cluster", _on(cluster) if number else ("--engine", "local")),
        ):
            state, result = tmp_path / f"state-{name}", tmp_path / f"{name}-{number}.json"
            of_state = ("--state", str(state), "--late-s", "200", "--json", str(result))
            subprocess.run(
                _command("audit", "run", str(file), *of_state, *options), timeout=RUN_S, check=False
            )
            found[name].append(_results(result))
    assert found["cluster"] == found["local"]
    assert any(verdict == "violated" for verdict, _ in found["local"][2].values())


def test_the_explorer_on_the_cluster_finds_all_states(cluster: Cluster, tmp_path: Path) -> None:
    _run("explore", "Flush", "--master", cluster.url, "--json", str(tmp_path / "cluster.json"))
    _run("explore", "Flush", "--json", str(tmp_path / "one.json"))
    assert _results(tmp_path / "cluster.json") == _results(tmp_path / "one.json")
