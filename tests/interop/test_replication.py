"""Tests replication with Apache's brokers: our slave and their master, their slave and our master.

Method: a tap records all bytes of the replication connection. Both logs are compared as files; the messages
of the slave are read while the master is down.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.byte_tap import ByteTap
from mqproof.conformance.adapters.apache.servers import ApacheServer, running
from mqproof.conformance.adapters.apache.tap import Tap
from mqproof.conformance.hosts.processes import Cluster, cluster, free_port
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, Sent
from mqproof.impl.remoting.java_json import quote_keys
from mqproof.impl.replication.stream import Transfer, read_position, read_transfer
from mqproof.impl.runtime.network import Address

pytestmark = pytest.mark.apache

NAME = "pair"
SEGMENT_BYTES = 1 << 24
SECONDS_MAX = 120.0
TOPIC = "Replicated"


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@contextmanager
def names_of_ours(folder: Path) -> Iterator[Cluster]:
    with cluster(folder, "ASYNC_FLUSH") as ours:
        ours.start_name_server()
        yield ours


def start_ours(ours: Cluster, port: int, *options: str) -> None:
    """Start our broker as a process, on the store `ours` of the folder."""
    settings = ours.folder / "ours.properties"
    settings.write_text(f"mappedFileSizeCommitLog={SEGMENT_BYTES}\nslaveReadEnable=true\n", encoding="utf-8")
    ours.start_server(
        "ours", "broker", "--namesrv", ours.name_server, "--port", str(port), "--name", NAME,
        "--store", str(ours.folder / "ours"), "--flush", "ASYNC_FLUSH", "-c", str(settings), *options,
    )  # fmt: skip


def kill_ours(ours: Cluster) -> None:
    process = ours.processes.pop("ours")
    process.kill()
    process.wait(SECONDS_MAX)


def apaches(
    release: str, ours: Cluster, role: str, names: Address | None = None, **properties: str
) -> ApacheServer:
    own = {
        "brokerRole": role,
        "brokerId": "1" if role == "SLAVE" else "0",
        "brokerName": NAME,
        "slaveReadEnable": "true",
        "flushDiskType": "ASYNC_FLUSH",
        **properties,
    }
    names = names or Address.parse(ours.name_server)
    return servers.broker(release, ours.folder, names, name="theirs", properties=own)


def ha_of(server: ApacheServer, release: str) -> Address:
    """4.9 ignores haListenPort in a broker's file: slaves connect one port above the broker's own."""
    host, port = server.address
    return Address(host, port + 1 if release.startswith("4.") else port - 1)


def send(client: BlockingClient, count: int, prefix: str) -> list[str]:
    """Send to the current master. Returns the statuses."""
    outcomes = [
        client.send(new_message(TOPIC, f"{prefix}{number}".encode(), keys=[f"{prefix}{number}"]))
        for number in range(count)
    ]
    return [each.status if isinstance(each, Sent) else repr(each) for each in outcomes]


def send_until_ok(client: BlockingClient, body: str) -> None:
    """Wait until slaves are known to have connected."""

    def stored() -> bool:
        try:
            outcome = client.send(new_message(TOPIC, body.encode()))
        except ClientError:
            return False
        return isinstance(outcome, Sent) and outcome.status == "SEND_OK"

    wait_for(stored, "no send is answered SEND_OK")


def log_bytes(store: Path) -> bytes:
    """Return the first segment of a log, without the zeros after its end."""
    segments = sorted((store / "commitlog").glob("0*"))
    return segments[0].read_bytes().rstrip(b"\0") if segments else b""


def have_the_same(one: Path, other: Path) -> bool:
    mine = log_bytes(one)
    return bool(mine) and mine == log_bytes(other)


def read_all(names: str) -> set[bytes]:
    """Return all bodies that can be read from any server; fewer while a server is down."""
    found: set[bytes] = set()
    try:
        with BlockingClient(names) as client:
            for queue in client.queues(TOPIC):
                offset = 0
                while (result := client.pull(queue, offset)).messages:
                    found |= {stored.message.body for stored in result.messages}
                    offset = result.next_offset
    except ClientError:
        return found
    return found


def committed_at(store: Path) -> int | None:
    """Return the offset of the client's group in the first queue, from the broker's file."""
    path = store / "config" / "consumerOffset.json"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    table: dict[str, dict[str, int]] = json.loads(quote_keys(text))["offsetTable"] if text else {}
    return table.get(f"{TOPIC}@mqproof_consumer", {}).get("0")


def transfers(said: bytearray) -> list[Transfer]:
    buffer, found = bytearray(said), []
    while (transfer := read_transfer(buffer)) is not None:
        found.append(transfer)
    assert not buffer or len(buffer) < SEGMENT_BYTES
    return found


def positions(said: bytearray) -> list[int]:
    buffer, found = bytearray(said), []
    while (position := read_position(buffer)) is not None:
        found.append(position)
    return found


def test_our_slave_follows_their_master(release: str, tmp_path: Path) -> None:
    with names_of_ours(tmp_path) as ours:
        master = apaches(release, ours, "SYNC_MASTER", inSyncReplicas="2")
        with (
            running(master),
            ByteTap(ha_of(master, release)) as tap,
            BlockingClient(ours.name_server) as client,
        ):
            slave = ("--role", "SLAVE", "--broker-id", "1", "--ha-master", str(tap.address))
            start_ours(ours, port := free_port(below=2), *slave)
            send_until_ok(client, "first")
            assert send(client, 50, "a") == ["SEND_OK"] * 50
            own = tmp_path / "ours"
            wait_for(lambda: have_the_same(own, master.store), "the logs differ")

            kill_ours(ours)
            start_ours(ours, port, *slave)
            send_until_ok(client, "second")
            assert send(client, 50, "b") == ["SEND_OK"] * 50
            wait_for(lambda: have_the_same(own, master.store), "the logs differ after a restart")

            asked, sent = tap.connections[-1]
            wait_for(lambda: len(positions(asked)) > 1, "the slave reports")
            again, acknowledged = positions(asked)[0], positions(asked)[1]
            assert 0 < again < acknowledged, "it began with its last record"
            assert transfers(sent)[0].position == again
            first, _ = tap.connections[0]
            assert positions(first)[0] == 0

            # Metadata is fetched every 10 s; then the master is stopped for good.
            wait_for(lambda: (own / "config" / "topics.json").read_text().count(TOPIC) > 0, "no topic yet")
            master.kill()
            expected = {f"{prefix}{number}".encode() for prefix in "ab" for number in range(50)}
            wait_for(lambda: read_all(ours.name_server) >= expected, "the slave is not read")


def test_their_slave_follows_our_master(release: str, tmp_path: Path) -> None:
    with names_of_ours(tmp_path) as ours:
        port = free_port(below=3)
        ha_port = port - 1
        start_ours(ours, port, "--role", "SYNC_MASTER", "--ha-port", str(ha_port))
        ha = Address("127.0.0.1", ha_port)
        # 5.x follows only the master that the name server reports, so the tap is registered there.
        with (
            ByteTap(ha) as tap,
            Tap(Address.parse(ours.name_server), {str(ha).encode(): str(tap.address).encode()}) as names,
            BlockingClient(ours.name_server) as client,
        ):
            assert send(client, 3, "before") == ["SLAVE_NOT_AVAILABLE"] * 3
            slave = apaches(release, ours, "SLAVE", names.address)
            with running(slave):
                send_until_ok(client, "first")
                assert send(client, 50, "a") == ["SEND_OK"] * 50
                own = tmp_path / "ours"
                wait_for(lambda: have_the_same(own, slave.store), "the logs differ")
                slave.stop()
                slave.start()
                send_until_ok(client, "second")
                assert send(client, 50, "b") == ["SEND_OK"] * 50
                wait_for(lambda: have_the_same(own, slave.store), "the logs differ after a restart")
                asked, sent = tap.connections[-1]
                assert transfers(sent)[0].position == positions(asked)[0] > 0

                client.commit(client.queues(TOPIC)[0], 1)
                wait_for(lambda: committed_at(slave.store) == 1, "the slave has no offset of the group")
                topics = slave.store / "config" / "topics.json"
                wait_for(lambda: topics.exists() and TOPIC in topics.read_text(), "no topic yet")
                kill_ours(ours)
                expected = {f"{prefix}{number}".encode() for prefix in "ab" for number in range(50)}
                wait_for(lambda: read_all(ours.name_server) >= expected, "the slave is not read")
