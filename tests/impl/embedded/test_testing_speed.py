"""Each figure about brokers for tests is measured, and only if what it measures has happened."""

import asyncio
import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.commands.benchmarks import app
from mqproof.impl.embedded import testing_speed
from mqproof.impl.embedded.testing_speed import isolated_tests_s
from mqproof.report.measurements import read


@pytest.mark.deep("starts a process and pytest: 3 CPU seconds")
def test_the_command_prints_and_writes_all_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    ran = CliRunner().invoke(app, ["bench", "testing", "--tests", "2", "--rounds", "1", "--json", str(file)])
    assert ran.exit_code == 0, ran.output
    for part in (
        "start without sockets",
        "memory of one more broker",
        "a silent consumer expires",
        "2 isolated",
    ):
        assert part in ran.output
    rows = {row.row: row.sides["mqproof"].median for row in read(file).rows}
    assert len(rows) == 11
    assert all(value > 0 for value in rows.values())


def test_a_story_that_does_not_happen_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def no_time(*_: object, **__: float) -> float:
        return 0.0

    monkeypatch.setattr(testing_speed, "_advanced", no_time)
    for story in (
        testing_speed._delay,
        testing_speed._retries,
        testing_speed._silence,
        testing_speed._check_back,
    ):
        logging.disable(logging.CRITICAL)
        try:
            with pytest.raises(RuntimeError):
                asyncio.run(story())
        finally:
            logging.disable(logging.NOTSET)
    monkeypatch.setattr(testing_speed, "_TEST_FILE", "def test_isolated(): raise AssertionError({tests})")
    with pytest.raises(RuntimeError, match="the isolated tests failed"):
        isolated_tests_s(1, tmp_path)
