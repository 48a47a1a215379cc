"""Tests that no task of a server can die alone: when it raises, the serving coroutine raises.

Method: simulated servers of every role. For each task, one function that it calls is broken while it runs.
The last test does the same to a real process, and reads its exit code.
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.delayed import DelayedDelivery
from mqproof.impl.broker.elected_role import ElectedRole
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.broker.timers import Timers
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.dledger import ledger_store
from mqproof.impl.dledger.config import Membership, Peer
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.ledger import Flush
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.route_table import RouteTable
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.replication.client import SlaveClient
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.server import MasterServer
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.runtime.supervision import TaskFailedError
from mqproof.impl.store.flush import LogFlusher
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.queue_flush import IndexFlusher, QueueFlusher
from mqproof.impl.store.scrub import Scrub
from tests.impl.world import SMALL_STORE

HA = Address("10.0.0.1", 10912)
MEMBER = Address("10.0.0.1", 40911)


def _config(**fields: Any) -> BrokerConfig:
    return BrokerConfig(store_directory="/store", host="10.0.0.1", port=10911, store=SMALL_STORE, **fields)


CONFIGS = {
    "master": _config(replication=ReplicationConfig(Role.ASYNC_MASTER)),
    "slave": _config(broker_id=1, replication=ReplicationConfig(Role.SLAVE, ha_master=HA)),
    "member": _config(membership=Membership(True, "g", (Peer("n0", MEMBER),), "n0")),
}

BROKEN: dict[tuple[str, str], tuple[type, str]] = {
    ("name server", "scan for silent brokers"): (RouteTable, "expire"),
    ("name server", "scan for idle connections"): (RemotingServer, "_close_idle"),
    ("master", "flush of the log"): (LogFlusher, "begin_round"),
    ("master", "flush of the queues"): (QueueFlusher, "flush"),
    ("master", "checkpoints"): (IndexFlusher, "flush"),
    ("master", "deletion of old files"): (MessageStore, "clean"),
    ("master", "scrub"): (Scrub, "step"),
    ("master", "write of messages"): (MessageStore, "_write"),
    ("master", "answers to sends"): (MessageStore, "_reason"),
    ("master", "write of offsets"): (OffsetTable, "persist"),
    ("master", "write of delays"): (DelayedDelivery, "persist"),
    ("master", "delivery of delayed messages"): (DelayedDelivery, "_step"),
    ("master", "checks of transactions"): (Transactions, "_check_all"),
    ("master", "delivery of timers"): (Timers, "_deliver"),
    ("master", "scan for silent clients"): (ClientTable, "silent_since"),
    ("master", "samples of statistics"): (Statistics, "sample"),
    ("master", "periods of statistics"): (Statistics, "counts"),
    ("master", "check of held pulls"): (PullHolds, "check"),
    ("master", "scan for idle connections"): (RemotingServer, "_close_idle"),
    ("master", "scan for silent slaves"): (MasterServer, "_keep_house"),
    ("master", "feed of a slave"): (Feed, "next_frame"),
    ("slave", "slave"): (SlaveClient, "_follow"),
    ("member", "DLedger member"): (Core, "deadline"),
    ("member", "flush of the ledger"): (Flush, "sync"),
    ("member", "dispatch of the ledger"): (LedgerStore, "_look_at"),
    ("member", "elected role"): (ElectedRole, "_topics_of_log"),
    ("member", "delivery of delayed messages"): (DelayedDelivery, "_step"),
    ("member", "checks of transactions"): (Transactions, "_check_all"),
    ("member", "delivery of timers"): (Timers, "_deliver"),
}
"""For the tasks of each role, a function that the task calls."""

NOT_STOPPED_BY_ANSWERS = {
    "registration",
    "registration of topics",
    "copy of the master's tables",
    "repair of damaged records",
    "search for the master",
}
"""Tasks that ask other servers: they log an unexpected error and ask again."""


def _breaks(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("broken by the test")


async def _breaks_soon(*_: Any) -> None:
    await asyncio.sleep(1)
    _breaks()


def _breaks_in(task: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises in that task only: other tasks call the same function."""

    def breaks(*arguments: Any) -> Any:
        current = asyncio.current_task()
        if (current.get_name() if current else task) == task:
            _breaks()
        return real(*arguments)

    return breaks


def _new_server(role: str, runtime: Runtime) -> Broker | NameServer:
    if role == "name server":
        return NameServer(NameServerConfig(host="10.0.0.1"), runtime)
    return Broker(CONFIGS[role], runtime)


async def _use(server: Broker | NameServer, network: SimulatedNetwork) -> None:
    """Store a message, and connect a slave, so that tasks that wait for work have some."""
    if not isinstance(server, Broker):
        return
    if server.replicas.server is not None:
        from tests.impl.replication.test_server import connected

        slave = await connected(network, HA)
        slave.say(0)
    for _ in range(3):
        await asyncio.sleep(5)
        for _message in range(3):
            server.store.put_soon([Message("T", b"hello", {}, queue_id=0)], lambda _: None)


def _play(role: str, breaks: Callable[[], None]) -> tuple[str, bool]:
    """Run a server whose function breaks once it has started. Returns the error, and whether it is ready."""
    loop = SimulatedLoop()

    async def main() -> tuple[str, bool]:
        network = SimulatedNetwork()
        runtime = simulated(loop, network)
        server = _new_server(role, runtime)
        await server.start()
        breaks()
        using = asyncio.ensure_future(_use(server, network))
        try:
            async with asyncio.timeout(200):
                await runtime.supervisor.failed()
        except TaskFailedError as error:
            ready = isinstance(server, Broker) and server.is_ready
            return str(error), ready
        finally:
            using.cancel()
            server.kill()

    return run_simulated(main(), loop)


@pytest.mark.parametrize(("role", "task"), BROKEN)
def test_a_task_that_raises_ends_its_server(role: str, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name = BROKEN[role, task]
    monkeypatch.setattr(ledger_store, "_ENTRIES_A_TURN", 1)

    def breaks() -> None:
        broken: Any = _breaks
        if name in ("_close_idle", "_keep_house"):
            broken = _breaks_soon
        elif name == "counts":
            broken = property(_breaks)
        elif owner in (QueueFlusher, LedgerStore) or task == "write of delays":
            broken = _breaks_in(task, getattr(owner, name))
        monkeypatch.setattr(owner, name, broken, raising=name != "counts")

    if name in ("_close_idle", "_keep_house", "_topics_of_log", "_look_at"):
        breaks()  # it runs once, or from the start on
    error, ready = _play(role, breaks)
    assert "ZeroDivisionError: broken by the test" in error
    assert task in error
    assert not ready


@pytest.mark.parametrize("role", ["name server", *CONFIGS])
def test_the_table_of_this_test_has_every_task_that_a_server_runs(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = SimulatedLoop()

    async def main() -> set[str]:
        network = SimulatedNetwork()
        runtime = simulated(loop, network)
        server = _new_server(role, runtime)
        await server.start()
        seen: set[str] = set()
        using = asyncio.ensure_future(_use(server, network))
        for _ in range(400):
            await asyncio.sleep(0.05)
            seen |= runtime.supervisor.running
        await using
        server.kill()
        return seen

    seen = run_simulated(main(), loop)
    tested = {task for _, task in BROKEN} | NOT_STOPPED_BY_ANSWERS
    assert seen <= tested
    assert len(seen) > 1


def test_an_error_in_an_answer_of_another_server_does_not_end_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mqproof.impl.broker.registration import Registrar

    loop = SimulatedLoop()

    async def main() -> bool:
        runtime = simulated(loop, SimulatedNetwork())
        broker = _new_server("master", runtime)
        await broker.start()
        monkeypatch.setattr(Registrar, "register", _breaks)
        await asyncio.sleep(100)
        ready = isinstance(broker, Broker) and broker.is_ready
        broker.kill()
        return ready

    assert run_simulated(main(), loop)


PROCESS = """
import sys
from mqproof.impl.broker.long_polling import PullHolds

def check(*_):
    raise ZeroDivisionError("broken by the test")

PullHolds.check = check
from mqproof.cli import main
sys.argv = ["mqproof", "broker", "--port", "0", "--store", sys.argv[1], "--config", sys.argv[2]]
main()
"""


def test_the_process_of_a_broker_whose_task_failed_ends_with_code_4(tmp_path: Path) -> None:
    config = tmp_path / "broker.properties"
    config.write_text("longPollingEnable=false\n")
    ended = subprocess.run(
        [sys.executable, "-c", PROCESS, str(tmp_path / "store"), str(config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout.startswith("ready broker=")
    assert ended.returncode == 4, ended.stderr
    assert "the task 'check of held pulls' failed" in ended.stderr
    assert "Traceback" in ended.stderr
