"""Tests two masters with a slave each and two name servers, as processes whose links are cut and healed.

The test runs on separate machines (network namespaces) where those are available, and on loopback, where
relays carry the traffic between master and slave. REPL-1: the slave has every message that a synchronous
master answered with SEND_OK. REPL-2 and REPL-5: after healing, both have the same log. DELIV-1: every message
is consumed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mqproof.conformance.faults.relay import Relay
from mqproof.conformance.hosts import namespaces
from mqproof.conformance.hosts.namespaces import Machines, machines, on_a_network
from mqproof.conformance.hosts.processes import Cluster, cluster, free_port
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageQueue, Sent
from mqproof.impl.runtime.network import Address

GROUPS = ("a", "b")
NAMES = ("names1", "names2")
TOPIC = "BenchmarkTest"
SECONDS_MAX = 120.0
SETTINGS = "mappedFileSizeCommitLog=1048576\nslaveTimeout=1000\n"


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@dataclass
class Site:
    """The brokers, and the acknowledged messages."""

    made: Cluster
    names: str
    acked: dict[str, set[bytes]] = field(default_factory=lambda: {group: set() for group in GROUPS})
    sent: int = 0

    def start(self, node: str, group: str, address: Address, *options: str) -> None:
        settings = self.made.folder / "broker.properties"
        settings.write_text(SETTINGS, encoding="utf-8")
        self.made.start_server(
            node, "broker", "--namesrv", self.names, "--host", address.host, "--port", str(address.port),
            "--name", group, "--store", str(self.made.folder / node), "--flush", "ASYNC_FLUSH",
            "-c", str(settings), *options,
        )  # fmt: skip

    def send(self, client: BlockingClient, group: str) -> str:
        """Send one message to the master of a group. Returns the status that the sender receives."""
        body = b"<%d>" % self.sent
        self.sent += 1
        outcome = client.send(new_message(TOPIC, body), MessageQueue(TOPIC, group, 0))
        if isinstance(outcome, Sent) and outcome.status == "SEND_OK":
            self.acked[group].add(body)
        return outcome.status if isinstance(outcome, Sent) else type(outcome).__name__

    def send_until_ok(self, client: BlockingClient, group: str) -> None:
        wait_for(lambda: self.send(client, group) == "SEND_OK", f"no send to {group} is answered SEND_OK")

    def log(self, node: str) -> bytes:
        files = sorted((self.made.folder / node / "commitlog").iterdir())
        return b"".join(file.read_bytes() for file in files).rstrip(b"\\0")

    def found(self, client: BlockingClient, group: str) -> set[bytes]:
        """Return all bodies of a group that can be consumed."""
        found: set[bytes] = set()
        offset = 0
        try:
            while (result := client.pull(MessageQueue(TOPIC, group, 0), offset)).messages:
                found |= {stored.message.body for stored in result.messages}
                offset = result.next_offset
        except ClientError:
            return set()
        return found

    def settle(self, client: BlockingClient) -> None:
        """Check that all invariants hold after every link is healed."""
        for group in GROUPS:
            self.send_until_ok(client, group)
            self.settle_one(client, group)

    def settle_one(self, client: BlockingClient, group: str) -> None:
        master, slave = f"{group}-master", f"{group}-slave"
        wait_for(lambda: self.log(master) == self.log(slave), f"the logs of {group} differ")
        assert all(body in self.log(slave) for body in self.acked[group])
        wait_for(
            lambda: self.found(client, group) >= self.acked[group],
            f"not all that {group} acknowledged is consumed",
        )


def a_slave_is_cut_off(
    site: Site, client: BlockingClient, cut: Callable[[], None], heal: Callable[[], None]
) -> None:
    """Cut off a slave: its master reports that in the status of sends; the other group is not affected."""
    for group in GROUPS:
        site.send_until_ok(client, group)
    cut()
    reported = {site.send(client, "a") for _ in range(3)}
    assert reported <= {"FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"}
    site.send_until_ok(client, "b")
    heal()
    site.settle(client)


@contextmanager
def behind_relays(folder: Path, silent: set[str]) -> Iterator[Site]:
    """Run on loopback; `silent` names the process that is disconnected from its master."""
    with cluster(folder, "ASYNC_FLUSH") as made, ExitStack() as links:
        store = str(folder / "names")
        names = [
            made.start_server(name, "namesrv", "--port", "0", "--store", store + name)["namesrv"]
            for name in NAMES
        ]
        site = Site(made, ";".join(names))
        for group in GROUPS:
            master = Address("127.0.0.1", free_port(below=3))
            ha = Address("127.0.0.1", master.port - 1)
            options = ("--role", "SYNC_MASTER", "--ha-port", str(ha.port))
            site.start(f"{group}-master", group, master, *options)
            relay = links.enter_context(_relay(ha, f"{group}-slave", silent))
            slave = Address("127.0.0.1", free_port(below=3))
            follows = ("--role", "SLAVE", "--broker-id", "1", "--ha-master", str(relay.address))
            site.start(f"{group}-slave", group, slave, *follows)
        yield site


def _relay(server: Address, slave: str, silent: set[str]) -> Relay:
    def way(data: bytes) -> list[bytes]:
        return [] if slave in silent else [data]

    return Relay(server, lambda: (way, way))


@contextmanager
def on_machines(folder: Path) -> Iterator[tuple[Site, Machines]]:
    """Run each process on a machine (a network namespace) of its own."""
    nodes = [f"{group}-{role}" for group in GROUPS for role in ("master", "slave")]
    with cluster(folder, "ASYNC_FLUSH") as made, machines(*NAMES, *nodes) as net:
        made.launchers = {name: net.launcher(name) for name in (*NAMES, *nodes)}
        for name in NAMES:
            store = str(folder / name)
            made.start_server(
                name, "namesrv", "--host", net.address(name), "--port", "9876", "--store", store
            )
        site = Site(made, ";".join(f"{net.address(name)}:9876" for name in NAMES))
        for node in nodes:
            slaves = ("--role", "SLAVE", "--broker-id", "1")
            options = ("--role", "SYNC_MASTER") if node.endswith("master") else slaves
            site.start(node, node[0], Address(net.address(node), 10911), *options)
        yield site, net


def test_a_slave_behind_a_cut_link_is_noticed_and_catches_up_later(tmp_path: Path) -> None:
    silent: set[str] = set()
    with behind_relays(tmp_path, silent) as site, BlockingClient(site.names) as client:
        a_slave_is_cut_off(site, client, lambda: silent.add("a-slave"), silent.clear)


def _pull_wires(folder: Path) -> None:
    with on_machines(folder) as (site, net), BlockingClient(site.names) as client:
        a_slave_is_cut_off(site, client, lambda: net.cut("a-slave"), lambda: net.heal("a-slave"))
        net.part("b-master", "b-slave")  # clients and name servers can reach both
        assert site.send(client, "b") in ("FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
        net.join("b-master", "b-slave")
        net.cut("a-master")
        assert site.send(client, "a") in ("Unknown", "Refused")
        site.send_until_ok(client, "b")
        net.cut(NAMES[0])
        with BlockingClient(site.names) as late:  # it must find the other name server
            site.send_until_ok(late, "b")
        net.heal("a-master")
        net.heal(NAMES[0])
        site.settle(client)


def test_no_acknowledged_message_is_lost_on_machines_that_are_disconnected(tmp_path: Path) -> None:
    if why := namespaces.missing():
        pytest.skip(f"not tested: partitions of machines, no network namespaces: {why}")
    on_a_network(lambda: _pull_wires(tmp_path))
