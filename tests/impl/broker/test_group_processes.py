"""A group of three brokers and two name servers as processes on real sockets: killed, stopped, cut off.

Whatever happens to its master, a group loses no acknowledged message, and no two masters acknowledge messages
at the same time. Each acknowledged message is found at the position in its acknowledgement. So no two
messages got the same position.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from mqproof.conformance.faults.relay import Relay
from mqproof.conformance.hosts import namespaces
from mqproof.conformance.hosts.namespaces import Machines, machines, on_a_network
from mqproof.conformance.hosts.processes import Cluster, cluster, free_ports
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, Sent
from mqproof.impl.runtime.network import Address
from mqproof.spec.events import read_log

IDS = ("n0", "n1", "n2")
SECONDS_MAX = 120.0


@dataclass
class Site:
    """The processes, the links between them, and the acknowledged messages."""

    made: Cluster
    names: list[str]
    ports: dict[str, int]
    peers: dict[str, str]
    """The addresses that each member uses for all: it reaches the others through links."""
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    """The brokers that are disconnected from the other brokers, but not from clients."""
    acked: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """The acknowledged messages by queue and offset."""
    sent: int = 0
    last_id: str = ""

    def start(self, id_: str) -> None:
        said = self.made.start_server(
            id_, "broker", "--namesrv", ";".join(self.names), "--port", "0", "--name", "a",
            "--store", str(self.made.folder / id_), "--self-id", id_, "--peers", self.peers[id_],
            *self.options.get(id_, ()),
        )  # fmt: skip
        self.ports[id_] = Address.parse(said["broker"]).port

    def kill(self, id_: str) -> None:
        process = self.made.processes.pop(id_)
        process.kill()
        process.wait(SECONDS_MAX)

    def signal(self, id_: str, number: signal.Signals) -> None:
        self.made.processes[id_].send_signal(number)

    def stop(self, id_: str) -> int:
        """Send SIGTERM and return the exit code."""
        process = self.made.processes.pop(id_)
        process.terminate()
        return process.wait(SECONDS_MAX)

    def transfers(self) -> int:
        """Return how often a member became a candidate at its leader's request."""
        logs = (read_log(self.made.events / f"{id_}.ndjson") for id_ in IDS)
        return sum(event.attrs.get("reason") == "transfer" for log in logs for event in log)

    def send(self, client: BlockingClient, count: int) -> None:
        """Send this number of messages, each until it is acknowledged."""
        deadline = time.monotonic() + SECONDS_MAX
        for _ in range(count):
            body = b"%d" % self.sent
            self.sent += 1
            while (sent := _sent(client, body)) is None:
                assert time.monotonic() < deadline, f"message {self.sent} is not acknowledged"
                for topic in (
                    "T",
                    "TBW102",
                ):  # request the routes, which are otherwise kept for half a minute
                    with suppress(ClientError):
                        client.queues(topic)
                time.sleep(0.1)
            place = (sent.queue.queue_id, sent.queue_offset)
            assert place not in self.acked, f"{body!r} and {self.acked[place]!r} are at one place"
            self.acked[place] = body
            self.last_id = sent.offset_message_id

    @property
    def master(self) -> str:
        """Return the member that accepted the last message, by the message's id."""
        port = int(self.last_id[8:16], 16)
        return next(id_ for id_, its in self.ports.items() if its == port)

    def found(self, client: BlockingClient) -> dict[tuple[int, int], bytes]:
        """Return all messages that can be consumed, by queue and offset."""
        found = {}
        for queue in client.queues("T"):
            offset = 0
            while (result := client.pull(queue, offset)).messages:
                for stored in result.messages:
                    found[queue.queue_id, stored.queue_offset] = stored.message.body
                offset = result.next_offset
        return found


def _sent(client: BlockingClient, body: bytes) -> Sent | None:
    try:
        outcome = client.send(new_message("T", body))
    except ClientError:
        return None
    return outcome if isinstance(outcome, Sent) and outcome.status == "SEND_OK" else None


@contextmanager
def _site(folder: Path) -> Iterator[Site]:
    with cluster(folder, "ASYNC_FLUSH") as made, ExitStack() as links:
        names = []
        for number in range(2):
            store = str(folder / f"names{number}")
            said = made.start_server(f"names{number}", "namesrv", "--port", "0", "--store", store)
            names.append(said["namesrv"])
        own = {id_: Address("127.0.0.1", port) for id_, port in zip(IDS, free_ports(len(IDS)), strict=True)}
        site = Site(made, names, {}, {})
        for id_ in IDS:
            seen = dict(own)
            for other in IDS:
                if other != id_:
                    seen[other] = links.enter_context(_link(site, id_, other, own[other])).address
            site.peers[id_] = ";".join(f"{other}-{address}" for other, address in seen.items())
        for id_ in IDS:
            site.start(id_)
        yield site


def _link(site: Site, one: str, other: str, server: Address) -> Relay:
    def way(data: bytes) -> list[bytes]:
        return [] if site.silent & {one, other} else [data]

    return Relay(server, lambda: (way, way))


def _kill(site: Site, client: BlockingClient, master: str) -> None:
    site.kill(master)
    site.send(client, 10)
    assert site.master != master
    site.start(master)


def _stop_and_continue(site: Site, client: BlockingClient, master: str) -> None:
    site.signal(master, signal.SIGSTOP)
    site.send(client, 10)
    assert site.master != master
    site.signal(master, signal.SIGCONT)  # it may still believe that it leads
    site.send(client, 10)


def _cut_off(site: Site, client: BlockingClient, master: str) -> None:
    site.silent = {master}
    site.send(client, 10)
    assert site.master != master
    site.silent = set()


def _stop_in_order(site: Site, client: BlockingClient, master: str) -> None:
    """Stop one leader after the other with SIGTERM, until one has transferred its leadership in time.

    On a busy machine a successor may be too slow, and an election follows.
    """
    for _ in range(8):
        before = site.transfers()
        assert site.stop(master) == 0
        site.send(client, 5)
        site.start(master)
        if site.transfers() > before:
            return
        site.send(client, 5)
        master = site.master
    pytest.fail("no leader transferred its leadership before it ended")


Fault = Callable[[Site, BlockingClient, str], None]
FAULTS: tuple[Fault, ...] = (_kill, _stop_in_order, _stop_and_continue, _cut_off)


def _play(folder: Path, faults: tuple[Fault, ...]) -> None:
    with _site(folder) as site, BlockingClient(";".join(site.names)) as client:
        site.send(client, 30)
        for fault in faults:
            fault(site, client, site.master)
        with BlockingClient(";".join(site.names)) as late:
            found = site.found(late)
        assert {place: found.get(place) for place in site.acked} == site.acked


def test_no_acknowledged_message_is_lost_when_masters_are_killed_paused_and_disconnected(
    tmp_path: Path,
) -> None:
    _play(tmp_path, FAULTS)


@pytest.mark.deep("three groups of processes, with eight faults each; a shorter run is made in every run")
@pytest.mark.parametrize("seed", range(3))
def test_no_acknowledged_message_is_lost_through_many_changes_of_masters(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    _play(tmp_path, tuple(chance.choice(FAULTS) for _ in range(8)))


def _on_machines(folder: Path) -> None:
    with cluster(folder, "ASYNC_FLUSH") as made, machines("names", *IDS) as net:
        made.launchers = {name: net.launcher(name) for name in ("names", *IDS)}
        names = f"{net.address('names')}:9876"
        host, store = net.address("names"), str(folder / "names")
        made.start_server("names", "namesrv", "--host", host, "--port", "9876", "--store", store)
        peers = ";".join(f"{id_}-{net.address(id_)}:40911" for id_ in IDS)
        site = Site(made, [names], {}, dict.fromkeys(IDS, peers))
        for number, id_ in enumerate(IDS):
            site.options[id_] = ("--host", net.address(id_), "--port", str(10911 + number))
            site.start(id_)
        with BlockingClient(names) as client:
            site.send(client, 30)
            _part_from_the_others(site, net, client, site.master)
            _pull_the_wire(site, net, client, site.master)
        with BlockingClient(names) as late:
            found = site.found(late)
    assert {place: found.get(place) for place in site.acked} == site.acked


def _part_from_the_others(site: Site, net: Machines, client: BlockingClient, master: str) -> None:
    """Disconnect the master from the other brokers. Clients and the name server can still reach it."""
    for other in set(IDS) - {master}:
        net.part(master, other)
    site.send(client, 10)
    assert site.master != master
    for other in set(IDS) - {master}:
        net.join(master, other)
    site.send(client, 10)


def _pull_the_wire(site: Site, net: Machines, client: BlockingClient, master: str) -> None:
    net.cut(master)
    site.send(client, 10)
    assert site.master != master
    net.heal(master)
    site.send(client, 10)


def test_no_acknowledged_message_is_lost_on_machines_that_are_disconnected(tmp_path: Path) -> None:
    if why := namespaces.missing():
        pytest.skip(f"not tested: partitions of machines, no network namespaces: {why}")
    on_a_network(lambda: _on_machines(tmp_path))
