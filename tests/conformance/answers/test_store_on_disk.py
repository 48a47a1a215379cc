"""Tests the reader of a store's files."""

from mqproof.conformance.answers.store_on_disk import read_log
from tests.conformance.answers.stopped_store import MESSAGES, SHAPE, stopped_store


def test_the_log_is_read_to_its_end() -> None:
    files, _ = stopped_store()
    log = read_log(files, SHAPE)

    assert [record.properties["UNIQ_KEY"] for record in log.records] == [f"m{n}" for n in range(MESSAGES)]
    assert log.is_clean
