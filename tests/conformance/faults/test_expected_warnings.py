"""Errors of our own code that no caller receives end the simulated run that they happen in."""

import asyncio
import logging

import pytest

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.engine.targets import InternalError
from mqproof.conformance.faults.expected_warnings import expected_warnings, internal_error
from mqproof.impl.runtime.simulated_loop import SimulatedLoop


def _run(error: Exception) -> None:
    """Run a task that fails, and that nothing awaits."""

    async def fail() -> None:
        raise error

    async def main() -> None:
        asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(1)

    loop = SimulatedLoop()
    try:
        simulated_loops.run(loop, main())
    finally:
        simulated_loops.end(loop)


def test_an_error_that_is_never_expected_in_a_task_ends_the_run() -> None:
    with expected_warnings("mqproof.impl"), pytest.raises(InternalError, match="KeyError: 'x'"):
        _run(KeyError("x"))
    assert internal_error() == ""


def test_a_lost_connection_in_a_task_is_expected() -> None:
    with expected_warnings("mqproof.impl"):
        _run(ConnectionResetError())


def test_a_silent_logger_keeps_errors_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("mqproof.impl.some_module")
    with expected_warnings("mqproof.impl"):
        log.error("the work failed", exc_info=TypeError("no number"))
        log.error("the peer is away", exc_info=OSError("lost"))
        log.warning("a fault")
    assert internal_error() == "the work failed: TypeError: no number"
    assert capsys.readouterr() == ("", "")
