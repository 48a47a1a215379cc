"""Attacks that a broker once did not withstand, repeated on processes over loopback.

The bounds are those of memory and of results; on a busy machine a test only takes longer.
"""

import json
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from mqproof.conformance.adapters.attacked_servers import ACCOUNTS, ADMINISTRATOR, STRANGER
from mqproof.conformance.adapters.victims import memory_mib
from mqproof.conformance.hostile.attack import Names, Signer
from mqproof.conformance.hostile.attack_requests import (
    MIB,
    held_pull,
    pull_fields,
    request,
    send_fields,
    signed,
)
from mqproof.conformance.hostile.attacks import ATTACKS
from mqproof.conformance.hostile.service import OTHER_SOURCE
from mqproof.conformance.hostile.strange_slave import stranger
from mqproof.conformance.hosts.processes import Cluster, ClusterError, free_port, free_ports
from mqproof.conformance.wire.frames import RESPONSE, Frame, encode, take
from mqproof.conformance.wire.server_connection import Address, Connection, connected
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import ClientError
from tests.impl.reproduction import SECONDS_MAX, TOPIC, figure, log_of, send, site, start, until

NAMES: Final = Names(TOPIC, "hostile_group")
OPAQUE: Final = 4711
DEEP: Final = pytest.mark.deep(
    "processes under heavy attacks; the suite hostile has lighter ones in every run"
)
MEMBERS: Final = ("n0", "n1", "n2")

pytestmark = [DEEP, pytest.mark.timeout(600)]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Cluster]:
    with site(tmp_path) as processes:
        yield processes


def frames_of(name: str) -> Callable[[Names], bytes]:
    """Return what the attack of the suite hostile sends."""
    (found,) = [one for one in ATTACKS if one.name == name]
    return found.frames


# A group that elects its master.


def start_members(made: Cluster, ports: list[int]) -> None:
    peers = ";".join(f"{id_}-127.0.0.1:{port}" for id_, port in zip(MEMBERS, ports, strict=True))
    for id_ in MEMBERS:
        made.start_server(
            id_, "broker", "--namesrv", made.name_server, "--port", "0", "--name", "broker-a",
            "--store", str(made.folder / id_), "--self-id", id_, "--peers", peers,
        )  # fmt: skip


def seconds_until_stored(made: Cluster, body: bytes) -> float:
    """Return how long it takes until the group confirms a message."""

    def is_stored() -> bool:
        try:
            with BlockingClient(made.name_server) as client:
                return send(client, body, None) == "SEND_OK"
        except ClientError:
            return False

    return until(is_stored, "the group stores no message")


def heartbeat(member: int, term: int) -> bytes:
    leader = MEMBERS[(member + 1) % 3]
    whole = {
        "group": "broker-a", "remoteId": MEMBERS[member], "localId": leader, "leaderId": leader,
        "term": term, "code": 200,
    }  # fmt: skip
    return request(51002, {}, json.dumps(whole).encode())


@pytest.mark.parametrize("attack", ["vote-term-beyond-all", "vote-term-greatest", "push-contradicts"])
def test_no_vote_and_no_push_ends_a_group(made: Cluster, attack: str) -> None:
    """Before: no master after a restart of all; or a member that answers nothing."""
    ports = free_ports(3)
    start_members(made, ports)
    seconds_until_stored(made, b"before")
    for number, port in enumerate(ports):
        names = Names(TOPIC, "broker-a", member=number)
        with connected(Address("127.0.0.1", port), SECONDS_MAX) as connection:
            if attack == "push-contradicts":  # of a leader that the member follows
                connection.write(heartbeat(number, 1000))
            connection.write(frames_of(attack)(names))
            code = json.loads(connection.answer(OPAQUE).body or b"{}").get("code")
            figure(f"{attack} at {names.member}", f"code {code}")
    figure("seconds to the next SEND_OK", f"{seconds_until_stored(made, b'after'):.1f}")
    assert all(made.running(id_) for id_ in MEMBERS)
    for id_ in MEMBERS:
        made.stop(id_)
    start_members(made, ports)
    figure("and after a restart of all", f"{seconds_until_stored(made, b'restarted'):.1f}")


# Memory and time of a broker.


def test_the_bodies_of_held_pulls_take_no_memory(made: Cluster) -> None:
    """Before: 45 to 1,862 MiB."""
    address = start(made)
    with BlockingClient(made.name_server) as client:
        assert send(client, b"x") == "SEND_OK"
        before = memory_mib(made)
        pulls = held_pull(bytes(15 * MIB), suspendTimeoutMillis=20_000)(NAMES) * 4
        with ExitStack() as stack:
            for _ in range(30):
                stack.enter_context(connected(address, SECONDS_MAX)).write(pulls)
            assert send(client, b"y") == "SEND_OK"
            after = memory_mib(made)
    figure("memory with 120 held pulls with bodies of 15 MiB", f"{before} to {after} MiB")
    assert after - before < 300


def test_two_connections_do_not_hold_all_pulls(made: Cluster) -> None:
    """Before: others get SYSTEM_BUSY, and one send blocks the event loop for 17 s."""
    address = start(made)
    pull = held_pull(queueId=0, queueOffset=1, suspendTimeoutMillis=SECONDS_MAX * 1000)(NAMES)
    with ExitStack() as stack, BlockingClient(made.name_server) as client:
        assert send(client, b"first") == "SEND_OK"
        attackers = [stack.enter_context(connected(address, SECONDS_MAX)) for _ in range(2)]

        def are_refused() -> bool:
            # `is_closed` reads the refusals, without which the broker reads no more.
            assert not any(attacker.is_closed for attacker in attackers)
            return "held pulls of this connection, at most 10000 allowed" in log_of(made)

        for attacker in attackers:
            for _thousand in range(50):
                attacker.write(pull * 1000)
                are_refused()
        until(are_refused, "no pull is refused")
        other = stack.enter_context(connected(address, SECONDS_MAX, OTHER_SOURCE))
        other.write(pull)
        began = time.monotonic()
        assert send(client, b"second") == "SEND_OK"
        figure("seconds of the send that wakes them", f"{time.monotonic() - began:.2f}")
        answer = other.answer(OPAQUE)
        figure("code of another consumer's held pull", answer.code)
    assert (answer.code, b"second" in answer.body) == (0, True)


HOLDERS: Final = """
import selectors, socket, sys
host, port, pulls = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
connections = [socket.create_connection((host, port)) for _ in range(2)]
for one in connections:
    one.sendall(pulls * 50_000)
waiting = selectors.DefaultSelector()
for one in connections:
    waiting.register(one, selectors.EVENT_READ)
while ready := waiting.select():
    for key, _ in ready:
        if not key.fileobj.recv(1 << 20):
            sys.exit()
"""


def held_pulls(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS_MAX) as page:
        lines = page.read().decode().splitlines()
    (line,) = [one for one in lines if one.startswith("mqproof_budget_used{") and '"held_pulls"' in one]
    return int(float(line.split()[-1]))


def longest_ms(connection: Connection, seconds: float) -> float:
    """Send messages to another topic, one after the other; return the longest time of one."""
    frame = request(10, send_fields(Names("Unrelated", "another_group")), b"x")
    longest_s, end_s = 0.0, time.monotonic() + seconds
    while (began := time.monotonic()) < end_s:
        connection.write(frame)
        assert connection.answer(OPAQUE).code == 0
        longest_s = max(longest_s, time.monotonic() - began)
    return round(longest_s * 1000, 1)


def test_other_sends_are_answered_while_100_000_pulls_are_woken(made: Cluster) -> None:
    """Before: 17 s. The target is 50 ms on an idle machine; a busy one only prints its figure."""
    port = free_port()
    exporter = {"metricsExporterType": "PROM", "metricsPromExporterPort": port}
    address = start(made, addressSharePercent=100, connectionSharePercent=100, **exporter)
    with ExitStack() as stack, BlockingClient(made.name_server) as client:
        assert send(client, b"first") == "SEND_OK"
        holders = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", HOLDERS, address.host, str(address.port)], stdin=subprocess.PIPE
            )
        )
        stack.callback(holders.kill)
        assert holders.stdin is not None
        # The share of every one is 100 %, so that these may hold all but the last of 100,000.
        pull = held_pull(queueId=0, queueOffset=1, suspendTimeoutMillis=60_000)(NAMES)
        holders.stdin.write(pull)
        holders.stdin.close()
        until(lambda: held_pulls(port) >= 99_999, "the pulls are not held")
        other = stack.enter_context(connected(address, SECONDS_MAX, OTHER_SOURCE))
        longest_ms(other, 0.5)  # creates the topic
        figure("longest unrelated send in ms, 100,000 pulls held", longest_ms(other, 2.0))
        waker = stack.enter_context(connected(address, SECONDS_MAX, OTHER_SOURCE))
        waker.write(request(10, send_fields(NAMES), b"wakes them"))
        longest, began = 0.0, time.monotonic()
        while held_pulls(port) > 0:
            longest = max(longest, longest_ms(other, 0.5))
            assert time.monotonic() < began + SECONDS_MAX
        figure("and while they are woken", longest)
        figure("seconds until all are woken", f"{time.monotonic() - began:.1f}")
        assert waker.answer(OPAQUE).code == 0
    assert longest < 5000


# The port of slaves.


def with_secret(made: Cluster, **properties: object) -> tuple[Address, Path]:
    """Start a synchronous master with a secret; return its port of slaves, and the file of the secret."""
    secret = made.folder / "peer.secret"
    secret.touch(0o600)
    secret.write_bytes(b"the secret of the brokers")
    port = free_port()
    start(made, brokerRole="SYNC_MASTER", haListenPort=port, peerSecretFile=secret, **properties)
    return Address("127.0.0.1", port), secret


def test_strangers_are_no_slaves_and_do_not_lock_out_a_slave(made: Cluster) -> None:
    """Before: SEND_OK for messages that no slave keeps; 64 strangers lock the slave out."""
    port, secret = with_secret(made)
    with ExitStack() as stack, BlockingClient(made.name_server) as client:
        views = [
            stack.enter_context(stranger(port, bytes(8), has_checksums=False, seconds_max=SECONDS_MAX))
            for _ in range(80)
        ]
        status = send(client, b"x")
        figure("status with 80 strangers as slaves", status)
        assert status == "SLAVE_NOT_AVAILABLE"
        options = made.folder / "slave.properties"
        options.write_text(f"haMasterAddress={port}\npeerSecretFile={secret}\n", encoding="utf-8")
        made.start_server(
            "slave", "broker", "--namesrv", made.name_server, "--port", "0", "--name", "broker-a",
            "--role", "SLAVE", "--broker-id", "1", "--store", str(made.folder / "slave"),
            "--config", str(options),
        )  # fmt: skip
        waited = until(lambda: send(client, b"y") == "SEND_OK", "the slave does not follow")
        figure("seconds until a slave beside them is in sync", f"{waited:.1f}")
        assert sum(view.streamed_bytes for view in views) == 0
    assert "refused" in log_of(made)


def accounts_file(made: Cluster) -> Path:
    file = made.folder / "plain_acl.yml"
    file.touch(0o600)
    file.write_text(ACCOUNTS, encoding="utf-8")
    return file


def test_with_accounts_nothing_is_streamed_to_strangers(made: Cluster) -> None:
    """Before: the port of slaves streams all bodies."""
    accounts = accounts_file(made)
    with pytest.raises(ClusterError):
        start(made, brokerRole="SYNC_MASTER", aclEnable="true", aclFile=accounts)
    assert "peerSecretFile" in log_of(made)
    figure("a master with accounts and without a secret", log_of(made).strip().splitlines()[-1][:200])


# Accounts.


def asked(connection: Connection, frame: Frame, signer: Signer) -> int:
    connection.write(encode(signed(frame, signer)))
    return connection.answer(frame.opaque).code


def test_accounts_keep_their_mode_and_denied_ones_read_and_delete_nothing(made: Cluster) -> None:
    """Before: mode 0644 after an update; a denied account reads by VIEW_MESSAGE_BY_ID, and deletes logs."""
    accounts = accounts_file(made)
    address = start(made, aclEnable="true", aclFile=accounts)
    with connected(address, SECONDS_MAX) as connection:
        assert asked(connection, Frame(10, 1, fields=send_fields(NAMES), body=b"secret"), ADMINISTRATOR) == 0
        account = {"accessKey": "another", "secretKey": "12345678", "admin": "false"}
        assert asked(connection, Frame(50, 2, fields=account), ADMINISTRATOR) == 0
        view = asked(connection, Frame(33, 3, fields={"offset": "0"}), STRANGER)
        delete = asked(connection, Frame(329, 4), STRANGER)
    mode = accounts.stat().st_mode & 0o777
    figure("mode after an update", f"{mode:o}")
    figure("codes of VIEW_MESSAGE_BY_ID and of the deletion", (view, delete))
    assert "another" in accounts.read_text(encoding="utf-8")
    assert mode == 0o600
    assert 0 not in (view, delete)


# Consumers.


CONSUMER: Final = """
import asyncio, resource, sys, time
from mqproof.client import MessageQueue, PullConsumer, connect

async def main():
    busy, last = 0.0, time.thread_time()

    async def tick():  # the processor time between two of its turns is that of other work of the loop
        nonlocal busy, last
        while True:
            now = time.thread_time()
            busy, last = max(busy, now - last), now
            await asyncio.sleep(0)

    async with connect(sys.argv[1]) as session:
        consumer, queue = PullConsumer(session, "G"), MessageQueue("T", "broker-a", 0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ticking = asyncio.create_task(tick())
        offset = bodies = 0
        while offset < int(sys.argv[2]):
            result = await consumer.pull(queue, offset)
            bodies += sum(len(stored.message.body) for stored in result.messages)
            offset = max(result.next_offset, offset + 1)
        ticking.cancel()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(before >> 10, after >> 10, bodies >> 20, round(busy * 1000))

asyncio.run(main())
"""
BOMBS: Final = {"zlib": "bodies-of-24-mib", "zstd": "bodies-of-zstd"}


def consumed(name_server: str, count: int) -> tuple[int, int]:
    """Run a consumer up to that offset; return the memory that it took in MiB, and the longest turn in ms."""
    command = [sys.executable, "-c", CONSUMER, name_server, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX * 4, check=True)
    before, after, size, busy_ms = map(int, done.stdout.split())
    figure("memory of a consumer", f"{before} to {after} MiB, {size} MiB of bodies in all")
    figure("longest turn of its loop, processor time", f"{busy_ms} ms")
    return after - before, busy_ms


def needs(kind: str) -> None:
    if kind == "zstd":
        pytest.importorskip("backports.zstd", reason="not tested: the extra zstd is not installed")


@pytest.mark.parametrize("kind", list(BOMBS))
def test_stored_bodies_do_not_fill_a_consumer(made: Cluster, kind: str) -> None:
    """Before: eight messages of 2 KiB (zstd) take a consumer to 673 MiB."""
    needs(kind)
    address = start(made)
    with connected(address, SECONDS_MAX) as connection:
        connection.write(frames_of(BOMBS[kind])(NAMES) * 8)
        assert connection.answer(OPAQUE).code == 0
    with BlockingClient(made.name_server) as client:
        assert send(client, b"last") == "SEND_OK"
    taken, busy_ms = consumed(made.name_server, 8)
    assert taken < 300
    assert busy_ms < 1000


class LyingBroker(socketserver.BaseRequestHandler):
    """A name server and a broker that answers every pull with as many bombs as a frame has room for."""

    record = b""

    def handle(self) -> None:
        buffer = bytearray()
        while data := self.request.recv(1 << 16):
            buffer += data
            while (frame := take(buffer)) is not None:
                fields, body = self._answer(frame)
                self.request.sendall(encode(Frame(0, frame.opaque, RESPONSE, fields, body)))

    def _answer(self, frame: Frame) -> tuple[dict[str, str], bytes]:
        host, port = self.request.getsockname()
        if frame.code == 105:
            queues = {
                "brokerName": "broker-a",
                "readQueueNums": 1,
                "writeQueueNums": 1,
                "perm": 6,
                "topicSysFlag": 0,
            }
            broker = {"cluster": "c", "brokerName": "broker-a", "brokerAddrs": {"0": f"{host}:{port}"}}
            return {}, json.dumps(
                {"queueDatas": [queues], "brokerDatas": [broker], "filterServerTable": {}}
            ).encode()
        if frame.code != 11:
            return {}, b""
        first, count = int(frame.fields["queueOffset"]), 15 * MIB // len(self.record)
        records = (with_offset(self.record, first + number) for number in range(count))
        end = str(first + count)
        return {
            "nextBeginOffset": end,
            "minOffset": "0",
            "maxOffset": end,
            "suggestWhichBrokerId": "0",
        }, b"".join(records)


def with_offset(record: bytes, offset: int) -> bytes:
    return record[:20] + offset.to_bytes(8, "big") + record[28:]


@pytest.mark.parametrize("kind", list(BOMBS))
def test_a_lying_broker_does_not_fill_a_consumer(made: Cluster, kind: str) -> None:
    """Before: 2 GiB, and the loop is blocked for 67 s."""
    needs(kind)
    address = start(made)
    with connected(address, SECONDS_MAX) as connection:
        connection.write(frames_of(BOMBS[kind])(NAMES))
        assert connection.answer(OPAQUE).code == 0
        connection.write(request(11, pull_fields(NAMES, maxMsgNums=1)))
        record = connection.answer(OPAQUE).body
    liar = type("Liar", (LyingBroker,), {"record": record[: int.from_bytes(record[:4], "big")]})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            taken, busy_ms = consumed(f"127.0.0.1:{server.server_address[1]}", 8)
        finally:
            server.shutdown()
    assert taken < 300
    assert busy_ms < 1000
