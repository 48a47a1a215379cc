"""The audit's Spark session, sized for its input."""

import atexit
import logging
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from mqproof.spec import spark

_BYTES_A_PARTITION: Final = 8 << 20
_SHORT_BYTES: Final = 4 << 30
_SHORT_TEXT_BYTES: Final = 512 << 20
_SHIPPED: Final = ("spark_audit", "spec", "impl", "report")
"""Packages sent to executors. Their Python must have the dependencies, mainly pyarrow, DuckDB and numba."""

_LOCAL: Final = "spark.local.dir"
_PACKAGE: Final = Path(__file__).parents[2]
"""The folder of `mqproof`."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    master: str = "local[2]"
    """Spark's notation: local[N] or the URL of a cluster."""
    memory: str = "2g"
    """Heap of the driver (in local mode, of everything), in Spark's notation."""
    input_bytes: int = 0
    """Approximate input size: determines the shuffle partitions and the compilation effort."""
    text_bytes: int = 0
    """Bytes of NDJSON files, which the JVM itself parses."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings from the user; they take precedence over ours."""

    @property
    def shuffle_partitions(self) -> int:
        """Upper bound; adaptive execution merges small partitions."""
        return min(400, 4 + self.input_bytes // _BYTES_A_PARTITION)

    @property
    def temporary(self) -> Path:
        """Folder for temporary files: Spark's spill folder, or TMPDIR if executors run elsewhere."""
        given = (self.conf.get(_LOCAL) or os.environ.get("SPARK_LOCAL_DIRS")) if self._is_local else None
        return Path(given.partition(",")[0] if given else tempfile.gettempdir()).resolve()

    def spilling_in(self, folder: Path) -> "SessionOptions":
        """Return options with which Spark spills into this folder, so that the files are removed with it.

        The options are unchanged on a cluster, or if several disks are named.
        """
        if not self._is_local or "," in self.conf.get(_LOCAL, ""):
            return self
        return replace(self, conf={**self.conf, _LOCAL: str(folder)})

    @property
    def _is_local(self) -> bool:
        return self.master.partition("[")[0] == "local"

    @property
    def is_short(self) -> bool:
        """Whether the run ends before the JVM's second compiler pays off.

        Tasks do most of their work outside the JVM, except for parsing text.

        Measurements: in an audit of 99 million events in Parquet, the compiler takes 46 CPU seconds and saves
        7. For 805 MiB of NDJSON it saves 12 seconds of 109; for 274 MiB it costs 6 more seconds.
        """
        return self.input_bytes < _SHORT_BYTES and self.text_bytes < _SHORT_TEXT_BYTES


def open_session(options: SessionOptions | None = None) -> SparkSession:
    """Return a session, new or the existing one of this process. The caller stops it.

    Raises:
        mqproof.spec.spark.SessionError: no usable Java, or the JVM did not start.
    """
    options = options or SessionOptions()
    settings = {
        "spark.driver.memory": options.memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(options.shuffle_partitions),
        # Cached small tables also get few partitions: each is a task of every job that reads them.
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
        # By default, each task of the many small jobs has a page of 64 MB, and garbage collection takes 7 or
        # more of the 53 CPU seconds of an audit of 4 million events. With this setting it takes 1 or 2 of 48.
        "spark.buffer.pageSize": "4m",
        # A folder `node=01` means the text 01.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    session = spark.start(
        "mqproof audit", options.master, settings | dict(options.conf), is_short=options.is_short
    )
    # Otherwise pyspark prints each error of a query, with a stack trace, besides raising it.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if not options.master.startswith("local["):
        _ship(session)
    return session


def _ship(session: SparkSession) -> None:
    """Send our packages to the executors, so that they need no installation."""
    # Executors fetch the archive from here, whenever they start.
    folder = Path(tempfile.mkdtemp(prefix="mqproof-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "mqproof.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(_PACKAGE / "__init__.py", f"{_PACKAGE.name}/__init__.py")
        for part in _SHIPPED:
            for source in sorted((_PACKAGE / part).rglob("*.py")):
                packed.write(source, source.relative_to(_PACKAGE.parent))
    session.sparkContext.addPyFile(str(archive))
