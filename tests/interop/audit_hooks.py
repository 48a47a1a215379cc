"""Builds the audit hooks for Java with Maven, once, and audits the events that they write."""

import os
import subprocess
import tempfile
import zlib
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, cache_folder, program
from mqproof.report.model import Verdict
from mqproof.spark_audit.audit import audit
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.judging.outcome import violations
from mqproof.spark_audit.sources.embedded_read import read_embedded
from mqproof.spark_audit.sources.inputs import find_files

SOURCES: Final = Path(__file__).parents[2] / "spark_audit" / "hooks"
_SECONDS_MAX: Final = 600.0


@cache
def hooks_jar() -> Path:
    """Return the jar of the hooks; the first call builds it and runs its unit tests.

    Raises:
        ApacheMissingError: Maven or a JDK is missing, or what Maven needs is not in its cache or registry.
    """
    program("javac", "install a JDK 17")
    maven = program("mvn", "install Maven")
    sources = SOURCES / "java"
    crc = 0
    for source in sorted(path for path in sources.rglob("*") if path.is_file()):
        crc = zlib.crc32(source.read_bytes(), crc)
    built = cache_folder() / f"audit-hooks-{crc:08x}.jar"
    if not built.is_file():
        built.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=built.parent, prefix=".audit-hooks-") as scratch:
            # Maven would write beside the sources: here it writes into a folder of its own.
            command = [maven, "-B", "-q", "-f", str(sources), f"-DbuildDirectory={scratch}/target", "package"]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False, cwd=scratch
            )
            if "could not be resolved" in done.stdout:
                raise ApacheMissingError(
                    f"audit-hooks: Maven cannot fetch what it needs: {done.stdout[:300]}"
                )
            assert done.returncode == 0, done.stdout
            (jar,) = Path(scratch).glob("target/audit-hooks-*.jar")
            jar.rename(built)
    return built


@cache
def go_application() -> Path:
    """Return the Go application with hooks; the first call tests the hooks and builds it.

    Raises:
        ApacheMissingError: Go is missing, or cannot fetch the client.
    """
    go = program("go", "install Go 1.22 or newer")
    application = Path(__file__).with_name("hooked_go")
    crc = 0
    for source in sorted([*application.iterdir(), *(SOURCES / "go").iterdir()]):
        crc = zlib.crc32(source.read_bytes(), crc)
    built = cache_folder() / f"hooked-go-{crc:08x}"
    if not built.is_file():
        built.parent.mkdir(parents=True, exist_ok=True)
        for folder, command in (
            (SOURCES / "go", ["test", "./..."]),
            (application, ["build", "-mod=readonly", "-o", str(built), "."]),
        ):
            done = subprocess.run(
                [go, *command], capture_output=True, text=True, timeout=_SECONDS_MAX, check=False, cwd=folder
            )
            if "dial tcp" in done.stderr:
                raise ApacheMissingError(f"audit hooks: Go cannot fetch the client: {done.stderr[-300:]}")
            assert done.returncode == 0, done.stdout + done.stderr
    return built


def agent(events: Path | None, node: str, **settings: object) -> str:
    """Return the option of `java` that records the clients of a program; None for no folder, but a topic."""
    values = {**({"directory": events} if events else {}), "node": node, **settings}
    arguments = ",".join(f"{name.replace('_', '-')}={value}" for name, value in values.items())
    return f"-javaagent:{hooks_jar()}={arguments}"


def recovered(events: Path) -> str:
    """Finish the files of killed processes, and return what the program prints."""
    command = [program("java", "install a JDK 17"), "-jar", str(hooks_jar()), str(events)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env={**os.environ})
    return done.stdout


def judged(events: Path, folder: Path) -> tuple[dict[str, tuple[Verdict, str]], list[dict[str, Any]]]:
    """Return verdict and reason of each invariant, and the violations, of all event logs in the folder."""
    folder.mkdir()
    with closing(Database(folder)) as database, active.embedded():
        done = audit(read_embedded(database, find_files([str(events)]), folder), folder, pictures=False)
        return {each.id: (each.verdict, each.detail) for each in done.results}, violations(done)
