"""Tests one cell of the guarantee matrix on brokers that are processes, with real sockets and files.

A few messages are sent while the faults of the cell are injected. Then everything that is left is restarted,
and the fate of each message is determined. The seed determines which message a fault follows and which broker
it hits; concurrent events are not determined. Power cannot be lost: a kill keeps the page cache.
"""

import asyncio
import random
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from mqproof.conformance.hosts.processes import STOP_SECONDS_MAX, Cluster, cluster, free_port
from mqproof.conformance.subjects.guarantee_entry import TOPIC, Played, fate
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, Outcome, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.spec.guarantee.matrix import Cell
from mqproof.spec.guarantee.matrix import Outcome as Became

FAULTS: Final = ("clean", "process", "disk", "machine")
"""The faults that can be injected into processes."""

_MASTER: Final = "master"
_SLAVE: Final = "slave"
_OTHER: Final = "other"
_QUEUES: Final = (MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-b", 0))
_MESSAGES: Final = 8
_SECONDS_MAX: Final = 240.0
"""The time limit of a run once its brokers are running."""
_LOST_S: Final = 60.0
"""A message that a consumer has not received after this time is lost."""
_POLL_S: Final = 0.05
_SETTINGS: Final = "mappedFileSizeCommitLog=1048576\nslaveTimeout=1000\nsyncFlushTimeout=1000\n"
_ROLES: Final = {
    "none": ("", ""),
    "ASYNC_MASTER": ("ASYNC_MASTER", ""),
    "SYNC_MASTER_5X": ("SYNC_MASTER", "inSyncReplicas=1\n"),
    "SYNC_MASTER": ("SYNC_MASTER", ""),
}


def live(cell: Cell, seed: int, expected: Became, folder: Path) -> Played:
    """Run once, in a folder that is deleted afterwards.

    The run ends as soon as no fate is worse than expected.

    Raises:
        ClusterError: a process did not start. TimeoutError: the slave did not follow, or a send did not
            end.
    """
    try:
        with cluster(folder, cell.setup.flush) as made:
            made.keeps_events = False
            return asyncio.run(_Life(made, cell, seed, expected).play())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Life:
    def __init__(self, made: Cluster, cell: Cell, seed: int, expected: Became) -> None:
        self._made = made
        self._cell = cell
        self._expected = expected
        self._chance = random.Random(seed)
        self._pair = (_MASTER,) if cell.setup.replication == "none" else (_MASTER, _SLAVE)
        nodes = (*self._pair, _OTHER) if cell.setup.producer == "sync" else self._pair
        self._ports = {node: free_port(below=3) for node in nodes}
        self._gone: set[str] = set()
        self._send_results: dict[str, str] = {}

    async def play(self) -> Played:
        await asyncio.to_thread(self._start_all)
        async with connect(self._made.name_server) as session, asyncio.timeout(_SECONDS_MAX):
            self._producer = Producer(session, ProducerConfig("PG"))
            await session.routes.refresh(TOPIC)
            await self._attempt("warm-up", _QUEUES[0])
            while not all(self._has(node, "warm-up") for node in self._pair):
                await asyncio.sleep(_POLL_S)
            sending = asyncio.create_task(self._send_all())
            for fault in self._chance.sample(self._cell.faults, len(self._cell.faults)):
                after = self._chance.randint(1, _MESSAGES // 2)
                while len(self._send_results) < after and not sending.done():
                    await asyncio.sleep(_POLL_S / 10)
                await asyncio.to_thread(self._strike, fault)
            await sending
            return await self._settle(session)

    # -- processes

    def _start_all(self) -> None:
        self._made.start_name_server()
        for node in self._ports:
            self._start(node)

    def _start(self, node: str) -> None:
        made = self._made
        role, extra = _ROLES[self._cell.setup.replication] if node == _MASTER else ("", "")
        options = ["--role", role, "--ha-port", "0"] if role else []
        if node == _SLAVE:
            options = ["--role", "SLAVE", "--broker-id", "1"]
        name = "broker-b" if node == _OTHER else "broker-a"
        settings = made.folder / f"{node}.properties"
        settings.write_text(_SETTINGS + extra, encoding="utf-8")
        made.start_server(
            node, "broker", "--namesrv", made.name_server, "--port", str(self._ports[node]), "--name", name,
            "--store", str(made.folder / node), "--flush", made.flush, "-c", str(settings), *options,
        )  # fmt: skip

    def _strike(self, fault: str) -> None:
        struck = [node for node in self._pair if node in self._made.processes]
        if not struck:
            return
        node = self._chance.choice(struck)
        if fault == "clean":
            self._made.stop(node)
        else:
            process = self._made.processes.pop(node)
            process.kill()
            process.wait(STOP_SECONDS_MAX)
        if fault in ("disk", "machine"):
            shutil.rmtree(self._made.folder / node)
        if fault == "machine":
            self._gone.add(node)
        elif self._chance.random() < 0.7:
            self._start(node)

    def _has(self, node: str, name: str) -> bool:
        """Return whether the node's log has the message; the log exists as long as its disk."""
        log = self._made.folder / node / "commitlog"
        files = list(log.iterdir()) if log.is_dir() else []
        return any(_body(name) in file.read_bytes() for file in files)

    # -- messages

    async def _send_all(self) -> None:
        for number in range(_MESSAGES):
            name = f"m{number}"
            self._send_results[name] = await self._send(name)
            await asyncio.sleep(0.02 * self._chance.random())

    async def _send(self, name: str) -> str:
        if self._cell.setup.producer == "oneway":
            with suppress(NoRouteError, RemotingError):
                await self._producer.send_oneway(_message(name), _QUEUES[0])
                return "silence"
            return "error"
        outcome = await self._attempt(name, _QUEUES[0])
        while self._cell.setup.producer == "sync" and not isinstance(outcome, Sent):
            await asyncio.sleep(_POLL_S)
            outcome = await self._attempt(name, _QUEUES[1])
        return outcome.status if isinstance(outcome, Sent) else "error"

    async def _attempt(self, name: str, queue: MessageQueue) -> Outcome:
        return await self._producer.send(_message(name), queue, timeout_ms=5000)

    async def _settle(self, session: Session) -> Played:
        """Restart the nodes that are down but not destroyed, and return the worst outcome of a message.

        If a message seems to be lost, reading is repeated until _LOST_S have passed.
        """
        for node in self._ports:
            if node not in self._gone and node not in self._made.processes:
                await asyncio.to_thread(self._start, node)
        deadline = time.monotonic() + _LOST_S
        while True:
            read = await self._read(session)
            fates = [
                Played(fate(send_result, name in read, self._is_kept(name)), name, send_result)
                for name, send_result in self._send_results.items()
            ]
            worst = max(fates, key=lambda played: played.became.badness)
            if worst.became.badness <= self._expected.badness or time.monotonic() > deadline:
                return worst
            await asyncio.sleep(_POLL_S)

    def _is_kept(self, name: str) -> bool:
        return any(self._has(node, name) for node in self._ports)

    async def _read(self, session: Session) -> set[str]:
        """Return the ids of the messages that a consumer can read now."""
        consumer = PullConsumer(session, "G")
        read: set[str] = set()
        for queue in _QUEUES if _OTHER in self._ports else _QUEUES[:1]:
            offset = 0
            with suppress(ClientError):  # a message that is not read is lost, or is read again
                while messages := (result := await consumer.pull(queue, offset)).messages:
                    read |= {stored.message_id for stored in messages}
                    offset = result.next_offset
        return read


def _body(name: str) -> bytes:
    return f"<{name}>".encode()


def _message(name: str) -> Message:
    return Message(TOPIC, _body(name), {UNIQUE_KEY: name})
