"""Spark and a single process generate the same rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.generator.generate import LogRequest, write_in_process
from mqproof.spark_audit.generator.scenario import ANOMALIES
from mqproof.spark_audit.generator.spark_generate import generate
from mqproof.spark_audit.generator.truth import read_truth

ALL = dict.fromkeys(ANOMALIES, 2)


@pytest.mark.parametrize("file_format", ["parquet", "ndjson"])
def test_the_same_seed_gives_the_same_log_on_any_number_of_partitions(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    request = LogRequest(120_000, ALL, seed=5, file_format=file_format)
    made = [write_in_process(request, tmp_path / "0")]
    made += [generate(spark, request, tmp_path / str(n), partitions=n) for n in (1, 2)]
    assert [len(each.files) for each in made] == [1, 1, 2]
    logs = [each.files for each in made]
    if file_format == "parquet":
        first, *others = (pa.concat_tables(map(pq.read_table, files)) for files in logs)
    else:
        first, *others = (b"".join(file.read_bytes() for file in files) for files in logs)
    assert all(other == first for other in others)
    truths = [read_truth(tmp_path / str(n)) for n in range(3)]
    assert truths[0] == truths[1] == truths[2]
    assert len({(each.events, each.messages, each.expected) for each in made}) == 1
