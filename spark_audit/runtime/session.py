"""The audit's Spark session, sized for its input."""

import atexit
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from mqproof.spec import spark

_BYTES_A_PARTITION: Final = 8 << 20
_SHORT_BYTES: Final = 4 << 30
_SHORT_TEXT_BYTES: Final = 512 << 20
_SHIPPED: Final = ("spark_audit", "spec", "impl", "report")
"""What runs on executors; what these need beside it, their Python must have: pyarrow, DuckDB and numba above
all."""

_LOCAL: Final = "spark.local.dir"
_PACKAGE: Final = Path(__file__).parents[2]
"""The folder of `mqproof`."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    master: str = "local[2]"
    """Spark's own notation: local[N] or the URL of a cluster."""
    memory: str = "2g"
    """Heap of the driver (local mode: of everything), in Spark's notation."""
    input_bytes: int = 0
    """About how much will be read: sizes the shuffles and the effort put into compiling."""
    text_bytes: int = 0
    """How much of it the JVM itself parses: NDJSON, as it is in files."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark that the user gives; they come before ours."""

    @property
    def shuffle_partitions(self) -> int:
        """Upper bound; adaptive execution merges small ones."""
        return min(400, 4 + self.input_bytes // _BYTES_A_PARTITION)

    @property
    def temporary(self) -> Path:
        """For temporary files: where Spark is told to spill, but TMPDIR where its executors are elsewhere."""
        given = (self.conf.get(_LOCAL) or os.environ.get("SPARK_LOCAL_DIRS")) if self._is_local else None
        return Path(given.partition(",")[0] if given else tempfile.gettempdir()).resolve()

    def spilling_in(self, folder: Path) -> "SessionOptions":
        """What Spark spills goes there and is gone with it; but not on a cluster, nor where several disks
        are named."""
        if not self._is_local or "," in self.conf.get(_LOCAL, ""):
            return self
        return replace(self, conf={**self.conf, _LOCAL: str(folder)})

    @property
    def _is_local(self) -> bool:
        return self.master.partition("[")[0] == "local"

    @property
    def is_short(self) -> bool:
        """Over before the JVM's second compiler has paid for itself: tasks do most of their work outside the
        JVM, but for the parsing of text.

        Measured, it takes 46 CPU seconds of an audit of 99 million events in Parquet, to spare 7; of 805 MiB
        of NDJSON it spares 12 seconds of 109, and 274 MiB take 6 seconds more with it.
        """
        return self.input_bytes < _SHORT_BYTES and self.text_bytes < _SHORT_TEXT_BYTES


def open_session(options: SessionOptions | None = None) -> SparkSession:
    """A session, new or the one this process has already. The caller stops it.

    Raises:
        mqproof.spec.spark.SessionError: no usable Java, or the JVM did not come up.
    """
    options = options or SessionOptions()
    settings = {
        "spark.driver.memory": options.memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(options.shuffle_partitions),
        # Small tables that are kept have few partitions, too: each is a task of every job that reads them.
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
        # Each task of the many small jobs has a page of 64 MB otherwise, and the garbage collector 7 and more
        # of the 53 CPU seconds of an audit of 4 million events; of 48 it has 1 or 2 so.
        "spark.buffer.pageSize": "4m",
        # A folder's `node=01` is the text 01.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    session = spark.start(
        "mqproof audit", options.master, settings | dict(options.conf), is_short=options.is_short
    )
    if not options.master.startswith("local["):
        _ship(session)
    return session


def _ship(session: SparkSession) -> None:
    """Send our packages to the executors, which need no installation of ours."""
    # Executors fetch it from where it is, whenever they start.
    folder = Path(tempfile.mkdtemp(prefix="mqproof-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "mqproof.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(_PACKAGE / "__init__.py", f"{_PACKAGE.name}/__init__.py")
        for part in _SHIPPED:
            for source in sorted((_PACKAGE / part).rglob("*.py")):
                packed.write(source, source.relative_to(_PACKAGE.parent))
    session.sparkContext.addPyFile(str(archive))
