"""Tests master and slave as killed processes on real sockets, and a slave that reads nothing."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqproof.conformance.hosts.processes import Cluster, cluster, free_port
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageQueue, Sent
from mqproof.impl.command.cli import app
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.server import MasterServer
from mqproof.impl.replication.stream import write_position
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.store.config import StoreConfig
from tests.impl.replication.site import message, store

SECONDS_MAX = 60.0


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def start(made: Cluster, node: str, port: int, *options: str) -> None:
    made.start_server(
        node, "broker", "--namesrv", made.name_server, "--port", str(port), "--name", "pair",
        "--store", str(made.folder / node), "--flush", "ASYNC_FLUSH", *options,
    )  # fmt: skip


def kill(made: Cluster, node: str) -> None:
    process = made.processes.pop(node)
    process.kill()
    process.wait(SECONDS_MAX)


def status(client: BlockingClient, body: str) -> str:
    try:
        outcome = client.send(new_message("T", body.encode()), MessageQueue("T", "pair", 0))
    except ClientError as error:
        return str(error)
    return outcome.status if isinstance(outcome, Sent) else "not stored"


def read(client: BlockingClient) -> list[bytes]:
    found: list[bytes] = []
    queue = MessageQueue("T", "pair", 0)
    try:
        while (result := client.pull(queue, len(found))).messages:
            found += [stored.message.body for stored in result.messages]
    except ClientError:
        return []
    return found


def test_a_killed_slave_restarts_and_is_read_when_its_master_is_killed(tmp_path: Path) -> None:
    with cluster(tmp_path, "ASYNC_FLUSH") as made:
        made.start_name_server()
        master, slave, ha = free_port(below=3), free_port(), ("--ha-port", "0")
        start(made, "master", master, "--role", "SYNC_MASTER", *ha)
        follows = ("--role", "SLAVE", "--broker-id", "1")
        start(made, "slave", slave, *follows)
        with BlockingClient(made.name_server) as client:
            client.send(new_message("T", b"makes the topic"))
            wait_for(lambda: status(client, "a") == "SEND_OK", "the slave follows")
            kill(made, "slave")
            wait_for(lambda: status(client, "b") == "SLAVE_NOT_AVAILABLE", "the slave is missed")
            start(made, "slave", slave, *follows)
            wait_for(lambda: status(client, "c") == "SEND_OK", "the slave follows again")
            stored = read(client)
            assert stored.count(b"a") >= 1 <= stored.count(b"c")
            topics = tmp_path / "slave" / "config" / "topics.json"
            wait_for(lambda: '"T"' in topics.read_text(encoding="utf-8"), "the slave knows the topic")
            kill(made, "master")
        with BlockingClient(made.name_server) as late:

            def can_be_read() -> bool:
                try:
                    late.queues("T")
                except ClientError:
                    return False
                return read(late) == stored

            wait_for(can_be_read, "the slave is read")
            assert status(late, "d") not in ("SEND_OK", "SLAVE_NOT_AVAILABLE")


def test_data_that_a_slave_has_not_read_stays_in_the_log() -> None:
    """A slow slave costs the master no memory."""

    async def in_time() -> tuple[int, int]:
        async with asyncio.timeout(SECONDS_MAX):
            return await main()

    async def main() -> tuple[int, int]:
        config = StoreConfig(commit_log_segment_bytes=1 << 25, index_enabled=False)
        log = store(config=config)
        for number in range(20):
            log.append(message(number, size=1 << 20))
        server = MasterServer(AsyncioNetwork(), log, ReplicationConfig(role=Role.ASYNC_MASTER), None)
        address = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*address, limit=1 << 16)
        writer.write(write_position(0))
        (sender,) = await _senders(server)
        sent = -1
        while sender._takes or sender._awake or sender._feed.sent != sent:
            sent = sender._feed.sent or 0
            await asyncio.sleep(0.05)
        unread = sent
        while sender._feed.sent != log.log_end:
            assert await reader.read(1 << 20)
        await server.stop()
        writer.close()
        return unread, log.log_end

    async def _senders(server: MasterServer) -> list[Any]:
        while not server._senders or not server.acks.slaves:
            await asyncio.sleep(0.01)
        return list(server._senders)

    unread, end = asyncio.run(in_time())
    assert 0 < unread < end


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--role", "KING"], "--role is 'KING'"),
        (["--role", "SLAVE"], "brokerId is 0 and brokerRole SLAVE"),
        (["--role", "SYNC_MASTER", "--broker-id", "2"], "brokerId is 2 and brokerRole SYNC_MASTER"),
        (["--role", "SLAVE", "--broker-id", "1", "--ha-master", "nowhere"], "--ha-master"),
    ],
)
def test_invalid_options_are_reported_in_one_line(options: list[str], said: str) -> None:
    ended = CliRunner().invoke(app, ["broker", *options])
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
