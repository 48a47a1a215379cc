"""The warnings of a logger are collected within the block, whatever its level was."""

import logging

import pytest

from mqproof.conformance.faults.collected_warnings import collected

_NAME = "mqproof.impl.for_this_test"


def test_warnings_are_collected_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger(_NAME)
    logger.setLevel(logging.CRITICAL)
    with collected(_NAME) as lines:
        logger.info("no warning")
        logger.warning("%d is damaged", 7)
    assert lines == ["7 is damaged"]
    assert not caplog.records
    assert (logger.level, logger.propagate, logger.handlers) == (logging.CRITICAL, True, [])
