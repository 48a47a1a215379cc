"""The examples with Spark, in one session: over a topic, and over the store of the broker that had it."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqproof import BlockingClient, Sent, new_message
from mqproof.spark_audit.runtime.session import SessionOptions, open_session
from tests.examples.programs import EXAMPLES
from tests.impl.command.test_cli import SERVE, server, stop


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    borrowed = SparkSession.getActiveSession() is not None
    session = open_session(SessionOptions(memory="1g"))
    yield session
    if not borrowed:
        session.stop()


def main_of(name: str) -> Callable[[SparkSession, str], None]:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[SparkSession, str], None] = module.main
    return main


def table(shown: str) -> list[list[str]]:
    """Return the cells of the rows of a table that `show` printed, without its header."""
    rows = [line.strip("|").split("|") for line in shown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_topics_and_their_store_are_tables(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    with server(*SERVE, "--store", str(store)) as (process, at):
        with BlockingClient(at["namesrv"]) as client:
            for number in range(6):
                click = b'{"page": "/%d", "ms": %d}' % (number % 2, number)
                assert isinstance(client.send(new_message("example_clicks", click)), Sent)
                event = new_message("example_events", b"hello", tag="web" if number else "app")
                assert isinstance(client.send(event), Sent)
        main_of("spark_collect")(spark, at["namesrv"])
        assert sorted(table(capsys.readouterr().out)) == [["/0", "2.0", "3"], ["/1", "3.0", "3"]]
        main_of("spark_topic")(spark, at["namesrv"])
        shown = capsys.readouterr().out
        assert table(shown) == [["app", "1"], ["web", "5"]]
        assert "the stream wrote 6 rows" in shown
        assert stop(process) == 0
    main_of("spark_store")(spark, str(store))
    shown = capsys.readouterr().out
    counts = {row[0]: row[1] for row in table(shown)}
    assert (counts["example_clicks"], counts["example_events"]) == ("6", "6")
    assert "0 damaged ranges in the log" in shown
    assert "0 records without an entry in their queue" in shown
