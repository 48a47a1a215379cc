"""Random logs for the comparison of the engines: every kind of event and anomaly, then random damage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.generator import cluster_log, store_directory
from mqproof.spark_audit.generator.generate import LogRequest, write_in_process
from tests.spark_audit.conftest import write_ndjson

_SWAPPED: Final = (
    "msg_id", "topic", "queue_id", "queue_offset", "commit_offset", "group", "client", "status", "ts", "term",
)  # fmt: skip
"""Fields that a damaged row takes from another row of its kind."""
NO_EVENTS: Final = (
    b"{this is no event}",
    b'{"ts":1,"seq":"2","node":"n","kind":"send"}',
    b'{"ts":1,"seq":1.0,"node":"n","kind":"send"}',
    b'{"ts":1,"seq":2,"node":"n","kind":"sent"}',
    b'{"ts":1,"seq":2,"kind":"send"}',
    b'{"ts":9223372036854775807,"seq":2,"node":"n","kind":"send"}',
    b'{"ts":1,"seq":2,"node":"n","kind":"send","queue_id":4294967296}',
    b'{"ts":1,"seq":2,"node":"n","kind":"send","attrs":{"schema":"99"}}',
    b'{"ts":1,"seq":2,"node":"n","kind":"send","attrs":"none"}',
    b'{"ts":1,"seq":2,"node":"n","kind":"send"} {"ts":1,"seq":3,"node":"n","kind":"send"}',
    b"17",
)
"""Lines that both engines must report as unreadable."""
TORN: Final = b'{"ts":1,"seq"'
"""The last line of a node that was killed."""


@dataclass(frozen=True, slots=True)
class RandomLog:
    paths: list[str]
    options: Options


def all_anomalies() -> list[dict[str, Any]]:
    """Return the rows of a log in which every check of events finds a violation."""
    return [*cluster_log.events().rows, *store_directory.events()]


def random_log(seed: int, folder: Path) -> RandomLog:
    """Write a log into the folder; the same one for the same seed."""
    random = Random(seed)
    rows = _damaged(all_anomalies(), random)
    lines = write_ndjson(rows).splitlines()
    if random.random() < 0.5:
        lines += random.sample(NO_EVENTS, random.randint(1, len(NO_EVENTS)))
    random.shuffle(lines)
    torn = TORN if random.random() < 0.3 else b""
    (folder / "all.ndjson").write_bytes(b"\n".join(lines) + b"\n" + torn)
    if random.random() < 0.3:
        write_in_process(LogRequest(2_000, seed=seed), folder / "generated")
    options = Options(
        broadcast=cluster_log.BROADCAST if random.random() < 0.7 else (),
        orderly=cluster_log.ORDERLY if random.random() < 0.7 else (),
        flush=random.choice((None, "SYNC_FLUSH", "ASYNC_FLUSH")),
        skew_us=random.choice((0, 100_000, 5_000_000)),
        is_skew_given=random.random() < 0.5,
        rebalance_us=random.choice((0, 20_000_000)),
    )
    return RandomLog([str(folder)], options)


def _damaged(rows: Sequence[Mapping[str, Any]], random: Random) -> list[dict[str, Any]]:
    """Return the rows, of which a few are lost, given twice, or have values of another row."""
    lost, twice, changed = (random.choice((0, 0.02, 0.1)) for _ in range(3))
    kept = [dict(row) for row in rows if random.random() >= lost]
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in kept:
        by_kind.setdefault(row["kind"], []).append(row)
    for row in kept:
        if random.random() < changed:
            other = random.choice(by_kind[row["kind"]])
            name = random.choice(_SWAPPED)
            row[name] = other.get(name) if name in other or name != "ts" else row["ts"]
    return kept + [row for row in kept if random.random() < twice]
