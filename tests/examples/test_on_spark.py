"""The Spark examples read a topic, and the store of the broker that had the topic, in one session."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqproof import BlockingClient, Sent, new_message
from mqproof.spark_audit.runtime.session import open_session
from tests.examples.programs import EXAMPLES
from tests.impl.command.test_cli import SERVE, server, stop
from tests.spark_audit.conftest import FOR_SMALL_TABLES, FOR_TESTS, configure


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    was_active = SparkSession.getActiveSession() is not None
    session = open_session(FOR_TESTS)
    configure(session, FOR_SMALL_TABLES)
    yield session
    if not was_active:
        session.stop()


def main_of(name: str) -> Callable[[SparkSession, str], None]:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[SparkSession, str], None] = module.main
    return main


def table(printed: str) -> list[list[str]]:
    """Return the cells of a table that `show` printed, row by row, without the header."""
    rows = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


@pytest.mark.deep("two JVMs' worth of Spark; spark_audit/sources tests both sources in every run")
def test_a_topic_and_the_store_of_its_broker_can_be_read_as_tables(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    setup = tmp_path / "broker.conf"
    setup.write_text("mappedFileSizeCommitLog=1048576")
    with server(*SERVE, "-c", str(setup), "--store", str(store)) as (process, addresses):
        with BlockingClient(addresses["namesrv"]) as client:
            for number in range(6):
                click = b'{"page": "/%d", "ms": %d}' % (number % 2, number)
                assert isinstance(client.send(new_message("example_clicks", click, keys=["k"])), Sent)
        main_of("spark_topic")(spark, addresses["namesrv"])
        assert table(capsys.readouterr().out) == [["/0", "2.0", "3"], ["/1", "3.0", "3"]]
        main_of("spark_writer")(spark, addresses["namesrv"])
        assert table(capsys.readouterr().out) == [
            ["7", '{"number":7,"total":5}'],
            ["8", '{"number":8,"total":2}'],
        ]
        assert stop(process) == 0
    main_of("spark_store")(spark, str(store))
    rows = sorted(row[:3] for row in table(capsys.readouterr().out))
    assert rows == [["record", "example_clicks", "6"], ["record", "example_totals", "2"]]
