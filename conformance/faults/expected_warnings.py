"""Suppresses the log warnings that injected faults are expected to cause."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def expected_warnings(*names: str) -> Iterator[None]:
    """Disable the loggers with these names within the block."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
