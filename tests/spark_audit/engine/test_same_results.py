"""Both engines give the same results: every row of every check, the verdicts, tallies and counts.

Method: audit on both the log and the stores with all anomalies, in which every check finds something, with a
generated log and with lines that are no events. Spark compares fingerprints first, and DuckDB checks every
message. Spark plans each check for seconds, so a default run has two of them and no stores. The deep profile
has all, and compares 300 random logs (random_logs.py), each of which takes as long.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.generator import cluster_log, store_directory
from mqproof.spark_audit.generator.generate import LogRequest, write_in_process
from mqproof.spark_audit.sources.inputs import InputError
from tests.spark_audit.conftest import write_ndjson
from tests.spark_audit.engine.both_engines import NO_STORES, Outcome, on_embedded, on_spark
from tests.spark_audit.engine.random_logs import NO_EVENTS, TORN, RandomLog, all_anomalies, random_log
from tests.spark_audit.evidence.test_subscriptions import priced, received

SOME = ("DELIV-1", "RAFT-3")
"""A check of messages, by their fingerprints and one by one, and a check of the whole log."""


def _on_both(
    spark: SparkSession, log: RandomLog, stores: Mapping[str, Path], ids: Collection[str]
) -> tuple[Outcome | str, Outcome | str]:
    """Return the outcomes, or the texts of the errors with which the engines refuse the log."""
    first: Outcome | str
    second: Outcome | str
    try:
        first = on_spark(spark, log.paths, log.options, stores, ids)
    except InputError as error:
        first = str(error)
    try:
        second = on_embedded(log.paths, log.options, stores, ids)
    except InputError as error:
        second = str(error)
    return first, second


def _assert_same(
    spark: SparkSession,
    log: RandomLog,
    stores: Mapping[str, Path] = NO_STORES,
    ids: Collection[str] = (),
) -> Outcome | None:
    """Return the outcome; None if both engines refuse the log."""
    first, second = _on_both(spark, log, stores, ids)
    if isinstance(first, Outcome) and isinstance(second, Outcome):
        differences = first.differences(second)
        assert not differences, "\n".join(map(str, differences))
        return first
    assert first == second
    return None


@pytest.mark.deep("an audit on Spark; evidence/test_subscriptions.py has these cases on DuckDB")
def test_sql_subscriptions_select_the_same_on_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    rows = received(priced("7", "3", "8", None, "9", "x"), 0, 4, 5).rows
    (tmp_path / "log.ndjson").write_bytes(write_ndjson(rows))
    outcome = _assert_same(spark, RandomLog([str(tmp_path / "log.ndjson")], Options()))
    assert outcome
    causes = Counter(row[-1] for row in outcome.findings if "DELIV-1" in row)
    assert outcome.verdicts["DELIV-1"][0] == "violated", causes


DEEP = pytest.mark.deep("every check on Spark; some are compared in every run")


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(SOME, id="some"),
        pytest.param(tuple(CHECKS), id="all", marks=DEEP),
    ],
)
def test_checks_find_the_same_rows_on_both_engines(
    spark: SparkSession, tmp_path: Path, ids: tuple[str, ...]
) -> None:
    is_whole = ids != SOME
    no_events = b"".join(line + b"\n" for line in NO_EVENTS)
    rows = [*all_anomalies(), *store_directory.events()]
    # The log of one node lacks its beginning: findings that begin before have the cause `before_log`.
    late = {"ts": min(row["ts"] for row in rows), "seq": 5, "node": "late", "kind": "rebalance", "attrs": {}}
    write_in_process(LogRequest(8_000, {"lost": 2, "duplicate": 1, "phantom": 1}), tmp_path / "log")
    (tmp_path / "log" / "injected.ndjson").write_bytes(write_ndjson([*rows, late]) + no_events + TORN)
    options = Options(broadcast=cluster_log.BROADCAST, orderly=cluster_log.ORDERLY, exact=False)
    log = RandomLog([str(tmp_path / "log")], options)
    outcome = _assert_same(spark, log, _stores(tmp_path) if is_whole else NO_STORES, ids)
    assert outcome
    assert (outcome.unreadable_rows, outcome.torn_files) == (len(NO_EVENTS), 1)
    found = {row[0] for row in outcome.findings}
    assert found >= set(ids) - {"DELIV-2"}, "otherwise the comparison shows nothing about a check"


def _stores(folder: Path) -> dict[str, Path]:
    """Write the stores with all anomalies."""
    stores = {store_directory.BROKER: folder / "store", store_directory.SLAVE: folder / "slave"}
    stores |= {name: folder / name for name in store_directory.MEMBERS}
    store_directory.write_store(folder / "store")
    store_directory.write_slave(folder / "slave")
    store_directory.write_members(folder)
    return stores


@pytest.mark.deep("300 logs, each audited on both engines; one is compared in every run")
@pytest.mark.parametrize("seed", range(300))
def test_a_random_log_gives_the_same_results_on_both_engines(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    _assert_same(spark, random_log(seed, tmp_path))
