"""Tests that the failure of a supervised task is logged, makes the process unready and is raised."""

import asyncio
import logging

import pytest

from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.serving import until_signal
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.runtime.supervision import Supervisor, TaskFailedError


async def _breaks() -> None:
    await asyncio.sleep(1)
    raise ZeroDivisionError("broken")


async def _rests() -> None:
    await asyncio.sleep(3600)


async def _is_done() -> None:
    await asyncio.sleep(1)


class Server:
    """A server whose stop hangs or fails, if the test wants so."""

    def __init__(self, supervisor: Supervisor, stop_s: float = 0.0, error: Exception | None = None) -> None:
        self.supervisor = supervisor
        self.stop_s = stop_s
        self.error = error
        self.has_stopped = False

    async def start(self) -> Address:
        self.supervisor.run("rest", _rests())
        self.supervisor.run("work", _breaks())
        return Address("127.0.0.1", 1)

    async def stop(self) -> None:
        await asyncio.sleep(self.stop_s)
        if self.error:
            raise self.error
        self.has_stopped = True


def test_a_task_that_raises_is_logged_with_its_traceback_and_named(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Supervisor:
        supervisor = Supervisor()
        supervisor.run("work", _breaks())
        assert supervisor.is_ready
        assert supervisor.running == {"work"}
        with pytest.raises(TaskFailedError, match="the task 'work' failed: ZeroDivisionError: broken"):
            await supervisor.failed()
        with pytest.raises(TaskFailedError, match="work"):  # also afterwards
            await supervisor.failed()
        return supervisor

    supervisor = run_simulated(main(), SimulatedLoop())
    assert not supervisor.is_ready
    assert supervisor.running == set()
    (record,) = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)


def test_a_callback_that_raises_is_a_failure() -> None:
    async def main() -> Supervisor:
        supervisor = Supervisor()
        asyncio.get_running_loop().call_soon(supervisor.guarded("callback", lambda: 1 // 0))  # type: ignore[arg-type]
        with pytest.raises(TaskFailedError, match="callback"):
            await supervisor.failed()
        return supervisor

    assert run_simulated(main(), SimulatedLoop()).failure is not None


def test_a_task_that_returns_or_is_cancelled_is_no_failure() -> None:
    async def main() -> bool:
        supervisor = Supervisor()
        task = supervisor.run("rest", _rests())
        supervisor.run("done", _is_done())
        await asyncio.sleep(2)
        task.cancel()
        await asyncio.sleep(2)
        return supervisor.is_ready and not supervisor.running

    assert run_simulated(main(), SimulatedLoop())


@pytest.mark.parametrize(
    ("stop_s", "error", "stops"), [(0.0, None, True), (3600.0, None, False), (0.0, OSError("disk"), False)]
)
def test_the_serving_coroutine_raises_when_a_task_fails(
    stop_s: float,
    error: Exception | None,
    stops: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(SimulatedLoop, "add_signal_handler", lambda *_: None, raising=False)

    async def main() -> tuple[bool, float]:
        supervisor = Supervisor()
        server = Server(supervisor, stop_s, error)
        with pytest.raises(TaskFailedError, match="work"):
            await until_signal({"server": lambda _: server}, supervisor)
        return server.has_stopped, asyncio.get_running_loop().time()

    has_stopped, seconds = run_simulated(main(), SimulatedLoop())
    assert has_stopped is stops
    assert seconds < 15
    assert capsys.readouterr().out == "ready server=127.0.0.1:1\n"
