"""Tests the limits of the log: a line that repeats does not fill it, and its file has a size limit."""

import logging
from pathlib import Path

from mqproof import log_limits, log_options
from mqproof.log_limits import INTERVAL_S, LINES_MAX, RepeatLimit


def _log_twice_as_often(clock: list[float], lines: list[str]) -> None:
    limit = RepeatLimit(lambda: clock[0])

    class Handler(logging.Handler):
        def emit(self, entry: logging.LogRecord) -> None:
            lines.append(entry.getMessage())

    logger, handler = logging.getLogger("tests.repeated"), Handler()
    handler.addFilter(limit)
    logger.addHandler(handler)
    try:
        for number in range(2 * LINES_MAX + 1):
            if number == 2 * LINES_MAX:
                clock[0] += INTERVAL_S
            logger.error("the disk of %s is full", number)
        logger.error("another line")
    finally:
        logger.removeHandler(handler)


def test_a_repeated_line_is_left_out_and_counted_and_other_lines_are_not() -> None:
    lines: list[str] = []
    _log_twice_as_often([0.0], lines)
    assert lines[:LINES_MAX] == [f"the disk of {number} is full" for number in range(LINES_MAX)]
    assert lines[LINES_MAX:] == [
        f"the disk of {2 * LINES_MAX} is full ({LINES_MAX} lines like this were left out)",
        "another line",
    ]


def test_a_rotated_log_has_the_mode_of_the_first_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch(mode=0o640)
    path.chmod(0o640)
    handler = log_options._rotating(path)
    assert isinstance(handler, logging.handlers.RotatingFileHandler)
    handler.maxBytes = 100
    for number in range(2 * log_limits.FILES_KEPT):
        handler.emit(logging.LogRecord("n", logging.ERROR, "f", 1, f"{number} {'x' * 90}", (), None))
    handler.close()
    found = sorted(tmp_path.iterdir())
    assert len(found) == log_limits.FILES_KEPT + 1
    assert {path.stat().st_mode & 0o777 for path in found} == {0o640}
    assert path.read_text().startswith("9 ")


def test_a_log_file_that_another_program_has_moved_is_made_again(tmp_path: Path) -> None:
    handler = log_options._rotating(tmp_path / "log")
    assert isinstance(handler, logging.handlers.RotatingFileHandler)
    (tmp_path / "log").unlink()
    handler.doRollover()
    handler.emit(logging.LogRecord("n", logging.ERROR, "f", 1, "a line", (), None))
    handler.close()
    assert (tmp_path / "log").read_text() == "a line\n"


def test_a_log_file_is_rotated_at_its_size_limit(tmp_path: Path) -> None:
    handler = log_options._rotating(tmp_path / "log")
    assert isinstance(handler, logging.handlers.RotatingFileHandler)
    assert (handler.maxBytes, handler.backupCount) == (log_limits.FILE_BYTES_MAX, log_limits.FILES_KEPT)
    handler.close()
