"""Generates event logs with injected anomalies and their ground truth, in this process.

scenario.py describes the scenario. A chunk of the log is computed only from its number, the seed, and the
state (offsets and event numbers) at its beginning. spark_generate.py writes large logs, with the same rows.
"""

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mqproof.spark_audit.generator import scenario as sc
from mqproof.spark_audit.generator.chunk import Chunk, State
from mqproof.spec.events import COLUMNS

TRUTH_FILE: Final = "_truth.parquet"
MANIFEST_FILE: Final = "_manifest.json"
"""The names begin with an underscore so that `audit run` on the folder does not read them as event logs."""

_TRUTH: Final = pa.schema(
    [
        ("anomaly", pa.string()),
        ("invariant", pa.string()),
        ("rule", pa.string()),
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("queue_offset", pa.int64()),
        ("msg_id", pa.string()),
        ("group", pa.string()),
    ]
)
_ROW_GROUP: Final = 1_000_000
_WORDS: Final = [
    *(name for name, kind in COLUMNS.items() if kind == "string" and name != "msg_id"),
    "attrs.key_value.key",
    "attrs.key_value.value",
]
"""Columns with few distinct values."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    events: int
    """Approximate number: the log consists of whole messages."""
    anomalies: dict[str, int] = field(default_factory=dict)
    seed: int = 1
    file_format: str = "parquet"
    """parquet | ndjson"""


@dataclass(frozen=True, slots=True)
class Generated:
    events: int
    messages: int
    expected: int
    """Number of violations in the ground truth."""
    files: tuple[Path, ...]


def write_in_process(
    request: LogRequest, out: Path, progress: Callable[[str], None] = lambda _: None
) -> Generated:
    """Write one event file, _truth.parquet and _manifest.json into the folder, without Spark.

    Raises:
        ScenarioError: the request does not fit (unknown anomaly, too few events).
        FileExistsError: the folder is not empty.
        OSError: it cannot be written.
    """
    plan = prepare(request, out)
    out.mkdir(parents=True, exist_ok=True)
    progress(f"writing {plan.messages_total} messages")
    chunks = _Chunks(plan, request.seed)
    if request.file_format == "parquet":
        write_parquet(out / "part-00000.parquet", chunks.tables())
    else:
        _write_ndjson(out / "part-00000.ndjson", chunks.tables())
    return completed(request, plan, out, sum(chunks.state.nodes.values()), chunks.truth)


@dataclass(slots=True)
class _Chunks:
    """The chunks of a plan, one after another."""

    plan: sc.Plan
    seed: int
    state: State = field(default_factory=State)
    """The state at the end of the chunks so far."""
    truth: list[dict[str, Any]] = field(default_factory=list)

    def tables(self) -> Iterator[pa.Table]:
        for number in range(self.plan.chunks):
            chunk = made_chunk(self.plan, self.seed, number, self.state)
            yield chunk.table()
            self.truth += chunk.truth
            self.state = self.state.plus(chunk.moved())


def made_chunk(plan: sc.Plan, seed: int, number: int, state: State) -> Chunk:
    return Chunk(plan, number, state, np.random.default_rng([seed, 1, number]))


def write_parquet(file: Path, tables: Iterable[pa.Table]) -> None:
    """Write at least one table to a file, in row groups that suit the audit."""
    groups = _gathered(tables)
    first = next(groups)
    try:
        with pq.ParquetWriter(file, first.schema, compression="zstd", use_dictionary=_WORDS) as writer:
            for table in chain([first], groups):
                writer.write_table(table, row_group_size=_ROW_GROUP)
    except OSError as error:
        # pyarrow's own error does not name the file.
        raise OSError(error.errno, os.strerror(error.errno or errno.EIO), str(file)) from None


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine tables up to the size of a row group."""
    waiting: list[pa.Table] = []
    for table in tables:
        if waiting and sum(each.num_rows for each in (*waiting, table)) > _ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
        waiting.append(table)
    if waiting:
        yield pa.concat_tables(waiting)


def _write_ndjson(file: Path, tables: Iterable[pa.Table]) -> None:
    encoder = msgspec.json.Encoder()
    with file.open("wb") as lines:
        for table in tables:
            for row in table.to_pylist(maps_as_pydicts="strict"):
                present = {name: value for name, value in row.items() if value is not None}
                lines.write(encoder.encode(present) + b"\n")


def completed(
    request: LogRequest, plan: sc.Plan, out: Path, events: int, truth: list[dict[str, Any]]
) -> Generated:
    """Write the truth and the manifest beside the event files."""
    pq.write_table(pa.Table.from_pylist(truth, _TRUTH), out / TRUTH_FILE)
    files = tuple(sorted(out.glob(f"part-*.{request.file_format}")))
    done = Generated(events, plan.messages_total, len(truth), files)
    manifest = {
        "wish": asdict(request),
        "events": events,
        "messages": done.messages,
        "expected": done.expected,
    }
    (out / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return done


def prepare(request: LogRequest, out: Path) -> sc.Plan:
    """Return a plan for the log in this folder.

    Raises:
        As `write_in_process`.
    """
    random = np.random.default_rng([request.seed, 0])
    plan = sc.make_plan(round(request.events / sc.EVENTS_A_MESSAGE), request.anomalies, random)
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out}: the folder is not empty")
    return plan
