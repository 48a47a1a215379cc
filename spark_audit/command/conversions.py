"""Inputs that become event logs before the audit: mapped tables and spans."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.report.console import stages, terminable
from mqproof.report.model import Exit
from mqproof.report.printable import one_line
from mqproof.report.running_command import beginning
from mqproof.spark_audit.command.failures import say
from mqproof.spark_audit.runtime.scratch import scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mqproof.spark_audit.sources.inputs import Inputs
    from mqproof.spark_audit.sources.mapping.mapping_file import MappingFile

_ERRORS_MAX: Final = 50

Mapped = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Mapping file (TOML) that turns tables of another form into events."),
]


@dataclass(frozen=True, slots=True)
class Conversions:
    """The tables of a run that are no event logs."""

    mappings: "tuple[MappingFile, ...]" = ()

    @classmethod
    def read(cls, mappings: list[str]) -> "Conversions":
        """Read the mapping files. Raises InputError."""
        if not mappings:
            return cls()
        from mqproof.spark_audit.sources.mapping.mapping_file import read_mapping

        return cls(tuple(read_mapping(Path(file)) for file in dict.fromkeys(mappings)))

    def needs_spark(self) -> list[str]:
        """Return the options whose tables only Spark reads."""
        return ["--mapping"] if any(mapping.needs_spark for mapping in self.mappings) else []

    def unnumbered(self) -> str | None:
        """Return the first mapping without the column `seq`."""
        return next((str(mapping.file) for mapping in self.mappings if not mapping.is_numbered), None)

    def without_spark(self, found: "Inputs", folder: Path, stage: Callable[[str], None]) -> "Inputs":
        """Convert what DuckDB reads, and return the inputs with the new event logs. Raises InputError."""
        from mqproof.spark_audit.sources.mapping.mapped_logs import convert

        files, origins = list(found.files), list(found.origins)
        for number, mapping in enumerate(self.mappings):
            if not mapping.needs_spark:
                done = convert(mapping, folder / f"mapped-{number}.parquet", stage)
                files.append(done.file)
                origins.append(done.line())
        return replace(found, files=tuple(files), origins=tuple(origins))

    def on_spark(
        self, spark: "SparkSession", found: "Inputs", folder: Path, stage: Callable[[str], None]
    ) -> "Inputs":
        """Convert what only Spark reads. Raises InputError."""
        from mqproof.spark_audit.sources.mapping.mapped_tables import convert_on_spark

        files, origins = list(found.files), list(found.origins)
        for number, mapping in enumerate(self.mappings):
            if mapping.needs_spark:
                done, written = convert_on_spark(spark, mapping, folder / f"mapped-{number}", stage)
                files += written
                origins.append(done.line())
        return replace(found, files=tuple(files), origins=tuple(origins))


@contextmanager
def converted(conversions: Conversions, found: "Inputs") -> "Iterator[Inputs]":
    """Yield the inputs with the event logs that DuckDB made, which exist meanwhile."""
    if not conversions.mappings:
        yield found
        return
    with terminable(), scratch(Path(tempfile.gettempdir()).resolve()) as folder:
        with stages("audit") as stage, mapping_errors_shown():
            inputs = conversions.without_spark(found, folder, stage)
        for line in inputs.origins:
            say(line)
        yield inputs


@contextmanager
def mapping_errors_shown() -> Iterator[None]:
    """End the command with one line for each error of a mapping."""
    from mqproof.spark_audit.sources.mapping.mapping_file import MappingError

    try:
        yield
    except MappingError as error:
        for line in error.lines[:_ERRORS_MAX]:
            print(f"{beginning()}: {one_line(line)}", file=sys.stderr)
        if (more := len(error.lines) - _ERRORS_MAX) > 0:
            print(f"{beginning()}: {more} more errors", file=sys.stderr)
        raise SystemExit(Exit.USAGE) from None
