"""One Spark session for all tests of the folder, and small hand-written logs.

Goal: logs of a few rows, each for one case (m_lost, m_twice, m_never_sent). Method: `LogBuilder` numbers the
rows of each node and puts STEP_US between them, so that a test states only the fields that it needs.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from mqproof.spark_audit.audit import Audit, audit
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.evidence.embedded_collect import evidence_of
from mqproof.spark_audit.evidence.gather import gather
from mqproof.spark_audit.evidence.log_pass import Passed, folds, plan_buckets
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.places import name_broker
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.profile import profiled_rows
from mqproof.spark_audit.runtime.session import SessionOptions, open_session
from mqproof.spark_audit.scan.partition import of_rows
from mqproof.spark_audit.sources.embedded_read import EmbeddedLog, read_embedded
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.inputs import Inputs
from mqproof.spark_audit.spark_schema import PASS
from mqproof.spec.events import COLUMNS

STEP_US = 1_000_000
"""One second between rows: far more than the clock skew that checks allow."""


FOR_TESTS = SessionOptions(
    # With one partition, a join needs no exchange of rows.
    master="local[1]",
    memory="1g",
    # The threads of Java's default collector use a fifth of the CPU time of tests.
    conf={"spark.driver.defaultJavaOptions": "-XX:+UseSerialGC"},
)

FOR_SMALL_TABLES = {
    # For tables of ten rows, planning takes most of the time: use one partition and no generated code.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    # Each table that is broadcast is a job of its own: a check of an audit has a dozen.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}

OF_USERS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.constraintPropagation.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
    "spark.sql.optimizer.disableHints": "false",
}
"""What FOR_SMALL_TABLES changes, except for the partitions."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session(FOR_TESTS)
    configure(session, FOR_SMALL_TABLES)
    yield session
    session.stop()


def configure(session: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        session.conf.set(name, value)


@pytest.fixture
def compiling_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield the session with the settings of users, for larger logs."""
    configure(spark, OF_USERS)
    yield spark
    configure(spark, FOR_SMALL_TABLES)


class LogBuilder:
    """Builds an event log: one broker, one queue of topic t, group g, unless a row has other values."""

    def __init__(self, flush: str | None = "SYNC_FLUSH", subscribed: tuple[str, ...] = ("g", "h")) -> None:
        self.rows: list[dict[str, Any]] = []
        self._next: Counter[str] = Counter()
        self.add("recover", "broker", commit_offset=0, attrs={"flush_disk_type": flush} if flush else {})
        for group in subscribed:
            self.subscribe(group)

    def add(self, kind: str, node: str, **fields: Any) -> "LogBuilder":
        seq, self._next[node] = self._next[node], self._next[node] + 1
        row = {"ts": len(self.rows) * STEP_US, "seq": seq, "node": node, "kind": kind, "attrs": {}, **fields}
        self.rows.append(row)
        return self

    def subscribe(self, group: str = "g", expression: str = "*", kind: str = "TAG") -> "LogBuilder":
        """Add the broker's record of a subscription to topic t."""
        attrs = {"type": kind, "expression": expression}
        return self.add("subscribe", "broker", topic="t", group=group, attrs=attrs)

    def send(self, msg_id: str, attempt: int = 1) -> "LogBuilder":
        return self.add("send", "producer", msg_id=msg_id, topic="t", attempt=attempt)

    def append(self, msg_id: str, offset: int, commit_offset: int | None = None) -> "LogBuilder":
        at = offset * 100 if commit_offset is None else commit_offset
        return self.add(
            "append", "broker", msg_id=msg_id, topic="t", queue_id=0, queue_offset=offset, commit_offset=at
        )

    def ack(self, msg_id: str, offset: int, status: str = "SEND_OK") -> "LogBuilder":
        return self.add(
            "send_ack", "producer", msg_id=msg_id, topic="t", queue_id=0, queue_offset=offset, status=status
        )

    def stored(self, msg_id: str, offset: int) -> "LogBuilder":
        """Add a send, an append and an acknowledgement."""
        return self.send(msg_id).append(msg_id, offset).ack(msg_id, offset)

    def deliver(self, msg_id: str, offset: int, group: str = "g", node: str = "consumer") -> "LogBuilder":
        return self.add(
            "deliver",
            node,
            msg_id=msg_id,
            topic="t",
            queue_id=0,
            queue_offset=offset,
            group=group,
            client=node,
        )

    def commit(self, offset: int, **attrs: str) -> "LogBuilder":
        return self.add(
            "offset_commit", "broker", topic="t", queue_id=0, queue_offset=offset, group="g", attrs=attrs
        )

    def crash(self, kept_end: int) -> "LogBuilder":
        """Add a crash of the broker and its restart with a log that ends at kept_end."""
        self.add("crash", "broker", attrs={"kind": "os"})
        return self.add("recover", "broker", commit_offset=kept_end, attrs=self.rows[0]["attrs"])


def table(rows: list[dict[str, Any]]) -> pa.Table:
    columns = {name: [row.get(name) for row in rows] for name in COLUMNS}
    types = {"map<string,string>": pa.map_(pa.string(), pa.string())}
    return pa.table({name: pa.array(columns[name], types.get(kind, kind)) for name, kind in COLUMNS.items()})


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    # Through Arrow, the rows become a constant of the plan, so that no job has to load them.
    from_arrow: DataFrame = spark.createDataFrame(table(rows))
    return from_arrow


def evidence_in(
    spark: SparkSession,
    rows: list[dict[str, Any]],
    brokers: tuple[str, ...],
    options: Options | None = None,
    folder: Path | None = None,
) -> Evidence:
    """Return the evidence of the rows, aggregated in this process: no task starts a Python process."""
    options, log = options or Options(), EventLog.of(frame(spark, rows))
    plan, schema = plan_buckets(log, options), to_arrow_schema(PASS)
    parts = of_rows(folds(plan), schema)(iter(table(rows).to_batches()))
    passed: DataFrame = spark.createDataFrame(pa.Table.from_batches([*parts], schema))
    return gather(log, brokers, options, passed=Passed(passed, passed, plan), folder=folder)


@contextmanager
def embedded_log(rows: Sequence[Mapping[str, Any]]) -> Iterator[EmbeddedLog]:
    """Yield the rows as a log of the embedded engine, which is in use meanwhile."""
    with (
        tempfile.TemporaryDirectory() as folder,
        active.embedded(),
        closing(Database(Path(folder))) as database,
    ):
        file = Path(folder) / "log.ndjson"
        file.write_bytes(write_ndjson(rows))
        yield read_embedded(database, Inputs((file,)), Path(folder))


@contextmanager
def embedded_evidence(
    rows: Sequence[Mapping[str, Any]], brokers: tuple[str, ...], options: Options | None = None
) -> Iterator[Evidence]:
    """Yield the evidence of the rows on the embedded engine, which is in use meanwhile."""
    with embedded_log(rows) as log:
        assert log.rows == len(rows), "all rows must be events"
        profiled = profiled_rows(log.events).persist()
        yield evidence_of(name_broker(log.events, brokers), profiled, brokers, options or Options())


def embedded_audit(rows: Sequence[Mapping[str, Any]], scratch: Path, **given: Any) -> Audit:
    """Judge the rows on the embedded engine."""
    with embedded_log(rows) as log:
        return audit(log, scratch, pictures=False, **given)


def write_ndjson(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
