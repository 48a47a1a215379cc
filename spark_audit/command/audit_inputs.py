"""The inputs of `audit run` and `audit explain`: found before an engine starts, and read on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from mqproof.spark_audit.command.conversions import Conversions, mapping_errors_shown
from mqproof.spark_audit.command.engine_choice import Engine, is_local, leave_to_spark
from mqproof.spark_audit.command.opened_session import opened_session
from mqproof.spark_audit.command.option_groups import SparkOptions
from mqproof.spark_audit.engine import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mqproof.spark_audit.engine.embedded.database import Database
    from mqproof.spark_audit.sources.embedded_read import EmbeddedLog
    from mqproof.spark_audit.sources.inputs import Inputs
    from mqproof.spark_audit.sources.read import Log
    from mqproof.spark_audit.sources.store.stored import Stored
    from mqproof.spark_audit.sources.trace.traces import Traces

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AuditInputs:
    """Event logs, stores and message traces. Every method that reads needs the engine of its session."""

    found: "Inputs"
    stores: dict[str, Path]
    traces: tuple[list[Path], list[Path]]
    """Stores and text files, as returned by find_traces."""
    index_slots: int | None = None
    conversions: Conversions = field(default_factory=Conversions)
    spans: tuple[Path, ...] = ()
    """Files of OpenTelemetry spans."""

    @property
    def has_events(self) -> bool:
        return bool(self.found.files or self.conversions.needs_spark())

    def on_engine(
        self,
        wanted: Engine,
        spark: SparkOptions,
        work: "Callable[[SparkSession | Database, Path], T]",
        carried: Sequence[Path] = (),
    ) -> T:
        """Return what `work` returns for a session and a scratch folder of the engine that fits.

        `carried` are files with events of earlier runs.
        """
        needs_spark = [*self._needs_spark(), *spark.given()]
        if is_local(wanted, needs_spark, [*self.found.files, *carried], self._other_files()):
            from mqproof.spark_audit.command.opened_database import opened_database
            from mqproof.spark_audit.sources.embedded_read import NotEmbeddedError

            try:
                with opened_database(spark.memory) as (database, scratch):
                    return work(database, scratch)
            except NotEmbeddedError as error:
                leave_to_spark(wanted, str(error))
        sizes = {file: file.stat().st_size for file in self.found.files}
        options = spark.session(
            input_bytes=sum(sizes.values()),
            text_bytes=sum(size for file, size in sizes.items() if file.suffix != ".parquet"),
        )
        with opened_session(options) as (session, scratch):
            return work(session, scratch)

    def _needs_spark(self) -> list[str]:
        given = {"--store": self.stores, "--trace": any(self.traces)}
        options = [option for option, value in given.items() if value]
        # The extra audit-local lacks pyarrow, by which DuckDB gets the rows of stores and traces.
        lacking = options if options and find_spec("pyarrow") is None else []
        return lacking + self.conversions.needs_spark()

    def _other_files(self) -> list[Path]:
        return [*self.stores.values(), *(path for paths in self.traces for path in paths)]

    def read_log(
        self, session: "SparkSession | Database", scratch: Path, stage: Callable[[str], None]
    ) -> "Log | EmbeddedLog":
        """Read the event logs."""
        if active.is_embedded():
            from mqproof.spark_audit.sources.embedded_read import read_embedded

            return read_embedded(cast("Database", session), self.found, scratch, stage)
        from mqproof.spark_audit.sources.read import read_files

        spark = cast("SparkSession", session)
        with mapping_errors_shown():
            found = self.conversions.on_spark(spark, self.found, scratch, stage)
        return read_files(spark, found, scratch)

    def read_stores(self, session: "SparkSession | Database", scratch: Path) -> "Stored | None":
        """Read the store directories; return None if there are none."""
        if not self.stores:
            return None
        from mqproof.spark_audit.sources.store.index import SLOTS

        slots = self.index_slots or SLOTS
        if active.is_embedded():
            from mqproof.spark_audit.sources.store.embedded_stores import read_embedded_stores

            return read_embedded_stores(cast("Database", session), self.stores, slots)
        from mqproof.spark_audit.sources.spark_stores import read_stores

        return read_stores(cast("SparkSession", session), self.stores, scratch, slots)

    def read_traces(self, session: "SparkSession | Database") -> "Traces | None":
        """Read the message traces; return None if there are none."""
        if not any(self.traces):
            return None
        if active.is_embedded():
            from mqproof.spark_audit.sources.trace.embedded_traces import read_embedded_traces

            return read_embedded_traces(cast("Database", session), *self.traces)
        from mqproof.spark_audit.sources.trace.spark_traces import read_traces

        return read_traces(cast("SparkSession", session), *self.traces)


def find_inputs(
    events: list[str],
    stores: list[str],
    traces: list[str],
    index_slots: int | None,
    conversions: Conversions | None = None,
    spans: Sequence[str] = (),
) -> AuditInputs:
    """Find the inputs. No engine has to run.

    Raises:
        InputError: a path does not exist, or is not what its option expects.
    """
    from mqproof.spark_audit.sources.inputs import Inputs, find_files

    return AuditInputs(
        found=find_files(events) if events else Inputs(()),
        stores=_named_stores(stores),
        traces=_found_traces(traces),
        index_slots=index_slots,
        conversions=conversions or Conversions(),
        spans=_found_spans(spans),
    )


def _named_stores(given: list[str]) -> dict[str, Path]:
    if not given:
        return {}
    from mqproof.spark_audit.sources.store.store_tables import name_stores

    return name_stores(given)


def _found_spans(given: Sequence[str]) -> tuple[Path, ...]:
    if not given:
        return ()
    from mqproof.spark_audit.sources.otel.span_files import find_spans

    return find_spans(given)


def _found_traces(given: list[str]) -> tuple[list[Path], list[Path]]:
    if not given:
        return [], []
    from mqproof.spark_audit.sources.trace.traces import find_traces

    return find_traces(given)
