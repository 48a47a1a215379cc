"""A failure of DuckDB ends the command with one line; the temporary folder is removed."""

import errno
import os

import pytest

from mqproof.report.model import Exit
from mqproof.spark_audit.command.opened_database import opened_database
from mqproof.spark_audit.engine import active


def test_the_embedded_engine_is_in_use_while_the_database_is_open() -> None:
    with opened_database() as (database, folder):
        assert active.is_embedded()
        assert folder.is_dir()
        assert database.rows("SELECT 1") == [(1,)]
    assert not active.is_embedded()
    assert not folder.exists()


def test_the_memory_of_the_database_is_limited(capsys: pytest.CaptureFixture[str]) -> None:
    with opened_database("300m") as (database, _):
        assert database.rows("SELECT current_setting('memory_limit')") == [("300.0 MiB",)]
    with pytest.raises(SystemExit) as ended, opened_database("1x"):
        pass
    assert ended.value.code == Exit.USAGE
    assert "--memory: '1x', expected a number and a unit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT error('it broke')", "DuckDB failed: Invalid Input Error: it broke"),
        (f"SELECT error('{os.strerror(28)}')", "No space left on device, for temporary files"),
    ],
)
def test_a_failed_query_is_one_line(query: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, opened_database() as (database, _):
        database.rows(query)
    assert ended.value.code == Exit.TOOL
    assert message in capsys.readouterr().err


def test_a_full_temporary_folder_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, opened_database() as (_, folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "lines-0.ndjson"))
    assert ended.value.code == Exit.TOOL
    assert "No space left on device, for temporary files" in capsys.readouterr().err
    with pytest.raises(OSError, match="elsewhere"), opened_database():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "elsewhere")
