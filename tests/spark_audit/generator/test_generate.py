"""The generator: one seed gives one log, all rows are valid events, and bad requests are refused."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqproof.spark_audit.generator.generate import MANIFEST_FILE, LogRequest, prepare, write_in_process
from mqproof.spark_audit.generator.rows import clock_us
from mqproof.spark_audit.generator.scenario import (
    ANOMALIES,
    QUEUES,
    SKEW_US,
    ScenarioError,
    broker_of,
    elsewhere,
    queue_id_of,
    queue_of,
    topic_of,
)
from mqproof.spark_audit.generator.truth import read_truth
from mqproof.spec.events import decode

ALL = dict.fromkeys(ANOMALIES, 2)


def rows(folder: Path) -> pa.Table:
    return pa.concat_tables(map(pq.read_table, sorted(folder.glob("part-*.parquet"))))


def test_another_seed_gives_another_log(tmp_path: Path) -> None:
    for seed in (5, 6):
        write_in_process(LogRequest(24_000, ALL, seed=seed), tmp_path / str(seed))
    assert rows(tmp_path / "5") != rows(tmp_path / "6")
    assert read_truth(tmp_path / "5") != read_truth(tmp_path / "6")


def test_every_generated_line_is_an_event_and_every_node_counts_densely(tmp_path: Path) -> None:
    # Several chunks: each continues at the end of the previous one.
    generated = write_in_process(LogRequest(120_000, seed=5, file_format="ndjson"), tmp_path / "log")
    assert json.loads((tmp_path / "log" / MANIFEST_FILE).read_text())["events"] == generated.events
    assert abs(generated.events - 120_000) < 3_000
    seqs: dict[str, list[tuple[int, int]]] = {}
    for file in generated.files:
        for number, line in enumerate(file.read_bytes().splitlines()):
            event = decode(line, f"{file}:{number}")
            seqs.setdefault(event.node, []).append((event.seq, event.ts))
    assert sum(map(len, seqs.values())) == generated.events
    for node, numbers in seqs.items():
        assert [seq for seq, _ in sorted(numbers)] == list(range(len(numbers))), node
        assert [ts for _, ts in sorted(numbers)] == sorted(ts for _, ts in numbers), node


def test_half_of_the_messages_go_to_one_queue_and_clocks_differ() -> None:
    sizes = np.bincount(queue_of(np.arange(30_000)))
    assert len(sizes) == QUEUES
    assert sizes.max() == 15_000
    assert sizes.min() == 1_000
    topics = np.bincount(topic_of(queue_of(np.arange(30_000))))
    assert topics.tolist() == [18_000, 6_000, 4_000, 2_000]
    assert 0 < abs(clock_us("broker-a") - clock_us("broker-b")) <= 2 * SKEW_US


def test_queues_have_unique_names_and_a_retry_stays_in_its_topic() -> None:
    queues = np.arange(QUEUES)
    names = set(zip(broker_of(queues), topic_of(queues), queue_id_of(queues), strict=True))
    assert len(names) == QUEUES
    assert all(topic_of(elsewhere(queues)) == topic_of(queues))
    assert all(broker_of(elsewhere(queues)) != broker_of(queues))


@pytest.mark.parametrize(
    ("log_request", "message"),
    [
        (LogRequest(12_000, {"lots": 1}), "anomaly 'lots': expected one of lost, duplicate"),
        (LogRequest(12_000, {"lost": -1}), "anomaly lost: count -1"),
        (LogRequest(12_000, {"lost": 10_000}), "10000 anomalies requested, a log of this size has room for"),
        (LogRequest(12_000, {"flush_lost": 10_000}), "anomaly flush_lost: 10000 requested"),
        (LogRequest(100), "too few events, the scenario needs 1935 or more"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(
    log_request: LogRequest, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=message):
        prepare(log_request, tmp_path / "log")


@pytest.mark.parametrize(
    ("events", "anomalies"),
    [
        (2_000, {"lost": 7}),
        (2_000, {"lost": 1_000, "offset_regression": 500}),
        (20_000, {"flush_lost": 1_190}),
        (20_000, {"flush_lost": 1_500, "phantom": 3}),
    ],
)
def test_the_suggested_number_of_events_is_sufficient_and_nearly_minimal(
    events: int, anomalies: dict[str, int], tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=r": request \d+ events") as raised:
        prepare(LogRequest(events, anomalies), tmp_path)
    needed = int(str(raised.value).split()[-2])
    prepare(LogRequest(needed, anomalies), tmp_path)
    with pytest.raises(ScenarioError):
        prepare(LogRequest(round(needed * 0.97), anomalies), tmp_path)


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep")
    with pytest.raises(FileExistsError, match="not empty"):
        prepare(LogRequest(12_000), tmp_path)
    assert (tmp_path / "precious").read_text() == "keep"
