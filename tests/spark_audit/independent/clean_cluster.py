"""A cluster at work without any violation: traffic, rebalances, restarts, crashes, retries, transactions."""

from functools import partial

from mqproof.spark_audit.evidence.options import Options
from tests.spark_audit.independent.simulation import BEGIN, MS, SECOND, Broker, Cluster, Group, Producer

LENGTH_S = 200
BROADCAST = "cast"
ORDERLY = "in-order"
OPTIONS = Options(
    skew_us=5 * SECOND, is_skew_given=True, broadcast=(BROADCAST,), subscriptions=(("*", "*", "*"),)
)
"""The audit options that an operator gives. Most groups report no subscription and receive everything."""
BOTH = ["broker-a", "broker-b"]


def build_clean_cluster(cluster: Cluster) -> None:
    """Put the work of a cluster on the agenda, for LENGTH_S seconds."""
    _name_server(cluster)
    Broker(cluster, "broker-a", slave="10.0.0.8:51022").start()
    Broker(cluster, "broker-b", flush="ASYNC_FLUSH").start()
    producers = [Producer(cluster, "producer-1"), Producer(cluster, "producer-2", attempts=1)]
    billing = Group(cluster, "billing", {"Orders": (BOTH, 2), "Payments": (["broker-b"], 2)})
    audit = Group(cluster, "audit", {"Orders": (BOTH, 2)}, fails=0.0)
    cast = Group(cluster, BROADCAST, {"News": (["broker-a"], 2)}, broadcast=True, fails=0.0)
    ordered = Group(cluster, ORDERLY, {"Steps": (["broker-a"], 2)}, orderly=True, fails=0.0)
    for group, nodes in ((billing, 2), (audit, 1), (cast, 2), (ordered, 1)):
        for number in range(nodes):
            group.join(f"{group.name}-{number}")
    _traffic(cluster, producers)
    _changes(cluster, billing)
    _broker_stops(cluster)
    _ledger(cluster, "dled", BEGIN + 2 * SECOND)


def _traffic(cluster: Cluster, producers: list[Producer]) -> None:
    until = BEGIN + LENGTH_S * SECOND - 5 * SECOND

    def send() -> None:
        producer, kind = cluster.random.choice(producers), cluster.random.random()
        if kind < 0.6:
            producer.send("Orders", BOTH, 2)
        elif kind < 0.7:
            producer.send("Orders", BOTH, 2, level=cluster.between(1, 4))
        elif kind < 0.8:
            half = "commit" if cluster.chance(0.7) else "rollback"
            producer.send("Payments", ["broker-b"], 2, half=half)
        elif kind < 0.9:
            producer.send("News", ["broker-a"], 2)
        else:
            producer.send("Steps", ["broker-a"], 2)
        if cluster.now < until:
            cluster.after(cluster.between(50 * MS, 700 * MS), send)

    cluster.after(20 * SECOND, send)


def _changes(cluster: Cluster, group: Group) -> None:
    """Members join, leave, and are killed and started again."""
    third = f"{group.name}-2"

    def kill() -> None:
        victim = cluster.random.choice(group.members)
        group.leave(victim, killed=True)
        cluster.after(cluster.between(3 * SECOND, 9 * SECOND), lambda: start_again(victim.node))

    def start_again(node: str) -> None:
        cluster.write(node, "register", client=f"{node}@815")
        group.join(node)

    def leave() -> None:
        # It may have been killed, and not be back yet.
        for member in [each for each in group.members if each.node == third]:
            group.leave(member, killed=False)

    def join() -> None:
        group.join(third)

    steps = [join, kill, leave]
    times = sorted(cluster.between(30 * SECOND, (LENGTH_S - 20) * SECOND) for _ in steps)
    for step, time in zip(steps, times, strict=True):
        cluster.after(time, step)


def _broker_stops(cluster: Cluster) -> None:
    broker = cluster.brokers["broker-b"]
    first = cluster.between(30 * SECOND, 60 * SECOND)
    cluster.after(first, lambda: broker.stop(clean=cluster.chance(0.3)))
    cluster.after(first + 40 * SECOND, lambda: broker.stop(clean=False))


def _name_server(cluster: Cluster) -> None:
    start = {"expiry_ms": "120000", "scan_interval_ms": "10000"}
    cluster.write("namesrv", "recover", start)
    addresses = {name: f"10.0.0.{number}:10911" for number, name in enumerate(BOTH, 7)}

    def beat(name: str, first: bool) -> None:
        about = {"broker": name, "address": addresses[name]}
        if first:
            topics = {"topics": "Orders,Payments", "version": "0.1.1"}
            cluster.write("namesrv", "register", about | {"id": "0"} | topics)
        elif cluster.brokers[name].down:
            cluster.write("namesrv", "expire", about | {"reason": "connection closed"})
            cluster.after(15 * SECOND, lambda: beat(name, True))
            return
        else:
            cluster.write("namesrv", "heartbeat", about)
            answer = {"brokers": f"{name}:0", "writable": name}
            cluster.write("namesrv", "route", answer, topic="Orders")
        cluster.after(10 * SECOND, lambda: beat(name, False))

    for name in BOTH:
        cluster.after(SECOND, partial(beat, name, True))


def _ledger(cluster: Cluster, name: str, begin: int) -> None:
    """A DLedger group of three members whose leader changes once."""
    cluster.at(begin, lambda: Ledger(cluster, name).run())


class Ledger:
    """The members n0, n1, n2 of a DLedger group, named NAME-n0 and so on."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        self.members = [f"{name}-n{number}" for number in range(3)]
        self.index, self.end = -1, 0

    def run(self) -> None:
        """Start, elect n0 and store entries; then elect n1 and store more."""
        self.start()
        self.elect(0, term=1)
        for _ in range(self.cluster.between(2, 5)):
            self.append(0, term=1)
        self.cluster.after(60 * SECOND, self._second_leader)

    def _second_leader(self) -> None:
        self.write(0, "step_down", {"reason": "timeout", "peer": ""}, term=2)
        self.elect(1, term=2)
        for _ in range(self.cluster.between(2, 5)):
            self.append(1, term=2)

    def write(self, member: int, kind: str, attrs: dict[str, str] | None = None, **columns: object) -> None:
        self.cluster.write(self.members[member], kind, attrs, **columns)

    def start(self) -> None:
        for member in range(3):
            state = {"index": "-1", "end_term": "0", "voted_for": "", "members": "n0,n1,n2"}
            self.write(member, "recover", state, term=0)

    def elect(self, leader: int, term: int) -> None:
        for member in range(3):
            self.write(member, "vote", {"voted_for": f"n{leader}"}, term=term, status="DURABLE")
            self.write(member, "vote", {"candidate": f"n{leader}"}, term=term, status="ACCEPT")
        self.write(leader, "become_leader", term=term)
        for member in {0, 1, 2} - {leader}:
            self.write(member, "heartbeat", {"leader": f"n{leader}"}, term=term)

    def append(
        self, leader: int, term: int, *, members: tuple[int, ...] = (0, 1, 2), commit: bool = True
    ) -> int:
        """Append an entry at the members, and commit it. Returns its index."""
        self.index += 1
        index = str(self.index)
        for member in sorted(members, key=lambda each: each != leader):
            role = "leader" if member == leader else "follower"
            attrs = {"index": index, "magic": "2", "role": role}
            self.write(member, "raft_append", attrs, term=term, commit_offset=self.end)
            self.write(member, "flush", {"file": "log", "index": index})
            if member != leader:
                self.write(member, "ha_ack", {"index": index, "leader": f"n{leader}"})
        self.end += 120
        if commit:
            self.commit(leader, term, members)
        return self.index

    def commit(self, leader: int, term: int, members: tuple[int, ...] = (0, 1, 2)) -> None:
        index = str(self.index)
        for member in sorted(members, key=lambda each: each != leader):
            self.write(member, "raft_commit", {"index": index})
            if member == leader:
                self.write(leader, "send_ack", {"index": index}, term=term, status="SEND_OK")
