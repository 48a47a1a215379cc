"""Tables that only Spark reads become the same events."""

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqproof.spark_audit.sources.mapping.mapped_tables import convert_on_spark
from mqproof.spark_audit.sources.mapping.mapping_file import MappingError, read_mapping
from tests.spark_audit.sources.mapping.test_mapped_logs import MAPPING, ROWS


def _write(rows: DataFrame, form: str, folder: Path) -> dict[str, str]:
    """Write the table `rows`; return the options with which it is read."""
    if form == "orc":
        rows.write.orc(str(folder / "rows"))
        return {}
    options = {"url": f"jdbc:derby:{folder}/db", "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    created = {**options, "url": f"{options['url']};create=true", "dbtable": "log"}
    rows.write.format("jdbc").options(**created).save()
    # Derby itself does not compare CLOBs, which Spark makes of texts.
    options["pushDownPredicate"] = "false"
    return options


@pytest.mark.deep("10 s of Spark each; the same cases run on DuckDB in every run")
@pytest.mark.parametrize(("form", "path"), [("orc", "rows"), ("jdbc", "log")])
def test_a_table_becomes_events_and_each_wrong_column_is_one_error(
    spark: SparkSession, tmp_path: Path, form: str, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = spark.read.json(spark.sparkContext.parallelize([json.dumps(row) for row in ROWS], 1))
    given = "".join(f"{name} = '{value}'\n" for name, value in _write(rows, form, tmp_path).items())
    text = MAPPING.replace("PATH", path).replace("FORMAT", form)
    text = text.replace("[source.columns]", f"[source.options]\n{given}[source.columns]")
    for name in ("at", "key", "part", "off", "user"):
        text = text.replace(f"'\"{name}\"'", f'"`{name}`"')
    file = tmp_path / "m.toml"
    file.write_text(text)
    done, files = convert_on_spark(spark, read_mapping(file), tmp_path / "out", lambda _: None)
    assert done.line() == f"{file}: 4 rows, 3 events, 1 rows give no event"
    found = spark.read.parquet(*map(str, files)).orderBy("node", "seq").collect()
    assert [(row["node"], row["seq"], row["ts"], row["kind"], row["attrs"]) for row in found] == [
        ("p-a", 1, 1000, "send", {"account": "x"}),
        ("p-a", 2, 3000, "send_ack", {}),
        ("p-b", 1, 2000, "send", {}),
    ]
    file.write_text(text.replace("`key`", "kez").replace("`part`", "client"))
    with pytest.raises(MappingError) as raised:
        convert_on_spark(spark, read_mapping(file), tmp_path / "again", lambda _: None)
    assert [line.partition("column ")[2].partition(":")[0] for line in raised.value.lines] == [
        "msg_id", "queue_id"
    ]  # fmt: skip
    assert "SQLQueryContextLogger" not in capfd.readouterr().err, "Spark logs each expression that fails"
