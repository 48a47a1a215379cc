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


def test_a_log_file_is_rotated_at_its_size_limit(tmp_path: Path) -> None:
    handler = log_options._rotating(tmp_path / "log")
    assert isinstance(handler, logging.handlers.RotatingFileHandler)
    assert (handler.maxBytes, handler.backupCount) == (log_limits.FILE_BYTES_MAX, log_limits.FILES_KEPT)
    handler.close()
