"""Generates event logs of any size with planted anomalies and their ground truth (scenario.py tells the
story).

Chunk by chunk, so that memory does not grow with the log: one chunk is computed while the one before is
written.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_audit import scenario as sc
from spark_audit.chunk import Chunk, State

EVENTS_A_MESSAGE: Final = 5.375
"""send, append, send_ack, two deliveries, and a flush and two commits for every eighth."""

TRUTH_FILE: Final = "_truth.parquet"
MANIFEST_FILE: Final = "_manifest.json"
"""Underscored, so that `audit run` on the folder does not take them for event logs."""

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


@dataclass(frozen=True, slots=True)
class Wish:
    events: int
    """About so many: the log consists of whole messages."""
    anomalies: dict[str, int] = field(default_factory=dict)
    seed: int = 1
    file_format: str = "parquet"
    """parquet | ndjson"""


@dataclass(frozen=True, slots=True)
class Generated:
    events: int
    messages: int
    expected: int
    """Violations that the ground truth lists."""
    files: tuple[Path, ...]


def generate(wish: Wish, out: Path) -> Generated:
    """Write event files, _truth.parquet and _manifest.json into the folder, which is made if need be.

    Raises:
        ScenarioError: the wish does not fit (unknown anomaly, too few events). FileExistsError: the folder is
            not empty. OSError: it cannot be written.
    """
    random = np.random.default_rng(wish.seed)
    plan = sc.make_plan(round(wish.events / EVENTS_A_MESSAGE), wish.anomalies, random)
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise FileExistsError(f"{out}: the folder is not empty")
    truth: list[dict[str, Any]] = []
    files: list[Path] = []
    events = 0
    with ThreadPoolExecutor(max_workers=1) as writer:
        written: Future[None] | None = None
        for number, (table, facts) in enumerate(_chunks(plan, random)):
            path = out / f"events-{number:05}.{wish.file_format}"
            if written is not None:
                written.result()
            written = writer.submit(_write, table, path)
            files.append(path)
            truth += facts
            events += table.num_rows
        if written is not None:
            written.result()
    pq.write_table(pa.Table.from_pylist(truth, _TRUTH), out / TRUTH_FILE)
    done = Generated(events, plan.messages_total, len(truth), tuple(files))
    manifest = {"wish": asdict(wish), "events": events, "messages": done.messages, "expected": done.expected}
    (out / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return done


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
        return
    encoder = msgspec.json.Encoder()
    with path.open("wb") as log:
        for row in table.to_pylist(maps_as_pydicts="strict"):
            log.write(encoder.encode({name: value for name, value in row.items() if value not in (None, {})}))
            log.write(b"\n")


def _chunks(plan: sc.Plan, random: np.random.Generator) -> Iterator[tuple[pa.Table, list[dict[str, Any]]]]:
    state = State()
    for number in range(plan.chunks):
        chunk = Chunk(plan, number, state, random)
        yield chunk.table(), chunk.truth
