"""Warnings that are no news: where faults are injected on purpose, each would be one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def expected_warnings(*names: str) -> Iterator[None]:
    """Within the block the loggers of these names say nothing."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
