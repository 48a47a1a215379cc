"""One random run of a pair with its observations: sends, crashes, cut links, reads from the slave."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from mqproof.conformance.engine.value_pairs import Row, row_of
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.subjects.pair import QUEUE, TOPIC, Pair, play
from mqproof.conformance.subjects.pair_comparison import Comparison
from mqproof.conformance.suites.replication import dimensions
from mqproof.conformance.suites.replication.checkers import Life, LogsSeen, ReadsSeen, SendSeen
from mqproof.conformance.suites.replication.dimensions import BATCHES, DIMENSIONS, LASTS_S
from mqproof.impl.client.model import ClientError
from mqproof.impl.replication.config import LogCheck, Role
from mqproof.impl.store.config import FlushMode
from mqproof.spec.events import Event

STEPS: Final = 24
CALM_S: Final = 120.0
"""The time after the last fault by which the slave must have caught up."""


def log_check() -> LogCheck:
    """Return how the slave compares logs. A mutant replaces this function by one with the released way."""
    return LogCheck.COMPARED


def live(seed: int) -> Life:
    """Run a pair and return the observations; the seed determines everything."""
    return _play(seed, row_of(DIMENSIONS, seed))[0]


def record(seed: int) -> list[Event]:
    """Return the event log of both brokers, in order of time, of a run with the drawn steps only.

    TLC takes too long for the many messages of a row.
    """
    return _play(seed, None)[1]


def _play(seed: int, row: Row | None) -> tuple[Life, list[Event]]:
    setup = row_of(DIMENSIONS, seed)
    flush, role = FlushMode[setup[dimensions.FLUSH]], Role[setup[dimensions.REPLICATED]]

    async def scenario(pair: Pair) -> tuple[Life, list[Event]]:
        return await _Witness(pair, role, [f"a pair, {flush.name}, {role.name}"]).watch(row), pair.events

    with expected_warnings("mqproof.impl"):  # every fault is intended, and each would cause a warning
        return play(scenario, seed, flush=flush, role=role, log_check=log_check())


@dataclass(slots=True)
class _Witness:
    """Runs the random steps and records the observations."""

    pair: Pair
    role: Role
    script: list[str]
    sends: list[SendSeen] = field(default_factory=list)
    logs: list[LogsSeen] = field(default_factory=list)
    reads: list[ReadsSeen] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    names: int = 0
    is_cut: bool = False
    forked: bool = False
    held: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    last: dict[str, tuple[str, ...]] = field(default_factory=lambda: {MASTER: (), SLAVE: ()})

    async def watch(self, row: Row | None) -> Life:
        """Perform the drawn steps, meet the row if there is one, end the faults; return the observations."""
        await self.pair.followed()
        for _ in range(STEPS):
            await self.step()
            self.look()
        if row is not None:
            await self.meet(row)
        caught_up = await self.calm()
        await self.read()
        comparison = Comparison(self.pair)
        if row is not None and caught_up is None:  # the logs differ, so the slave begins again
            self.pair.lose_disk(SLAVE)
            await self.pair.start(SLAVE)
            await self.pair.followed()
        if row is not None and caught_up is not False:
            await comparison.run(synchronous=self.role is Role.SYNC_MASTER)
        return Life(
            synchronous=self.role is Role.SYNC_MASTER,
            sends=tuple(self.sends),
            logs=tuple(self.logs),
            reads=tuple(self.reads),
            caught_up=caught_up,
            slave_offsets=tuple(self.offsets),
            wrong=tuple(comparison.watch.wrong),
            answers=comparison.watch.answers,
            script=tuple(self.script),
        )

    async def step(self) -> None:
        pair, chance = self.pair, self.pair.chance
        running = [node for node in (MASTER, SLAVE) if node in pair.brokers]
        drawn = chance.random()
        if drawn < 0.5:
            await self.send(chance.randint(1, 3))
        elif drawn < 0.62 and running:
            self.end(chance.choice(running), power=chance.random() >= 0.5)
        elif drawn < 0.82:
            await self.start_both()
        elif drawn < 0.88 and not self.is_cut:
            self.cut()
        elif drawn < 0.94:
            self.heal()
        else:
            await asyncio.sleep(chance.choice((1, 30)))

    async def meet(self, row: Row) -> None:
        """Start what is down, send, inject the fault of the row, send again, and end the fault."""
        batch, waits = BATCHES[row[dimensions.BATCH]], row[dimensions.WAITING] != "not"
        self.heal()
        await self.start_both()
        await self.send(batch, waits=waits)
        self.script.append(f"{batch} message{'s' * (batch > 1)} at once")
        await self.fail(row[dimensions.FAULT])
        if row[dimensions.MEANWHILE] == "some":
            self.script.append("some are sent during the fault")
            await self.send(batch, waits=waits)
        else:
            self.script.append("nothing is sent during the fault")
        await asyncio.sleep(LASTS_S[row[dimensions.LASTS]])
        self.script.append(f"the fault lasts {row[dimensions.LASTS]}")
        self.look()
        self.heal()
        await self.start_both()
        await self.then(row[dimensions.AFTERWARDS])

    async def fail(self, fault: str) -> None:
        """Inject a fault of the table, after all messages have reached the slave."""
        node = MASTER if fault.startswith("master") else SLAVE
        if fault == "link is cut":
            self.cut()
        elif fault.endswith("stops"):
            await self.pair.stop(node)
            self.script.append(f"the {fault}")
        else:
            self.end(node, power=fault.endswith("power"))

    async def then(self, what: str) -> None:
        self.script.append(f"afterwards {what}")
        if what == "both restart":
            for node in (MASTER, SLAVE):
                await self.pair.stop(node)
            await self.start_both()
        elif what == "the master is killed":
            self.end(MASTER, power=False)
            self.look()
            await self.start_both()
        await self.send(1)

    async def start_both(self) -> None:
        for node in (MASTER, SLAVE):
            if node not in self.pair.brokers:
                await self.start(node)

    def end(self, node: str, *, power: bool) -> None:
        (self.pair.crash if power else self.pair.kill)(node)
        name = "master" if node == MASTER else "slave"
        self.script.append(f"the {name} {'loses its power' if power else 'is killed'}")

    def cut(self) -> None:
        self.pair.cut()
        self.is_cut = True
        self.script.append("the link is cut")

    def heal(self) -> None:
        self.pair.heal()
        self.is_cut = False

    async def start(self, node: str) -> None:
        """Start a node. A restarted master with less than its slave has is a fork."""
        await self.pair.start(node)
        if node == MASTER:
            if SLAVE in self.pair.brokers:  # records that the master had sent arrive after its end
                self.last[SLAVE] = tuple(self.pair.names_in(SLAVE))
            log, slaves = tuple(self.pair.names_in(MASTER)), self.last[SLAVE]
            self.forked = self.forked or log[: len(slaves)] != slaves
        self.look()

    async def send(self, count: int, *, waits: bool | None = None) -> None:
        """Send messages at once; `waits` says whether for the slave, and None draws it."""
        if MASTER not in self.pair.brokers:
            return
        names = [f"m{self.names + number:04d}" for number in range(count)]
        self.names += count
        if waits is None:
            waits = self.pair.chance.random() < 0.7
        expected = self.expected(waits=waits)
        statuses = await asyncio.gather(*(self.pair.send(name, wait=waits) for name in names))
        self.look()
        if (
            self.pair.has_caught_up() != (expected == frozenset({"SEND_OK"}))
            and self.role is Role.SYNC_MASTER
        ):
            expected = frozenset() if waits else expected  # the slave connected or disconnected meanwhile
        for name, status in zip(names, statuses, strict=True):
            seen = SendSeen(name, status, waits, expected, name in self.held, name in self.known)
            self.sends.append(seen)
            self.script.append(f"send {name}{'' if waits else ' without waiting'}: {status}")

    def expected(self, *, waits: bool) -> frozenset[str]:
        if not waits or self.role is Role.ASYNC_MASTER:
            return frozenset({"SEND_OK"})
        server = self.pair.brokers[MASTER].replicas.server
        if SLAVE not in self.pair.brokers and server is not None and not server.acks.slaves:
            return frozenset({"SLAVE_NOT_AVAILABLE"})
        if self.is_cut and server is not None:
            late = "FLUSH_SLAVE_TIMEOUT" if server.acks.slaves else "SLAVE_NOT_AVAILABLE"
            return frozenset({late})
        return frozenset({"SEND_OK"}) if self.pair.has_caught_up() else frozenset()

    def look(self) -> None:
        """Record both logs."""
        pair = self.pair
        seen: dict[str, tuple[str, ...] | None] = {MASTER: None, SLAVE: None}
        for node in pair.brokers:
            seen[node] = self.last[node] = tuple(pair.names_in(node))
        self.known.update(seen[MASTER] or ())
        self.held.update(seen[SLAVE] or ())
        self.logs.append(LogsSeen(seen[MASTER], seen[SLAVE], self.follows(), self.forked))

    def follows(self) -> bool:
        return not self.is_cut and self.pair.follows()

    async def calm(self) -> bool | None:
        """End the faults; return whether the slave has caught up, None if it need not after a fork."""
        self.heal()
        await self.start_both()
        await self.send(1)
        caught_up = await self.pair.until(self.pair.has_caught_up, CALM_S)
        self.look()
        return caught_up or (None if self.forked else False)

    async def read(self) -> None:
        """Kill the master, read from the slave and commit an offset there, then restart the master."""
        pair = self.pair
        log = tuple(pair.names_in(SLAVE))
        if not log or self.forked:
            return
        await asyncio.sleep(60)  # the client receives both addresses, and the slave receives the topic
        await pair.consumer.commit(QUEUE, 0)
        await asyncio.sleep(15)  # the slave receives the offset
        pair.kill(MASTER)
        await asyncio.sleep(60)  # clients receive the route without the master
        read: list[str] = []
        try:
            while messages := (await pair.consumer.pull(QUEUE, len(read))).messages:
                read += [stored.message_id for stored in messages]
            await pair.released.commit(QUEUE, len(log))
        except ClientError:
            pass  # messages that were not read are missing in `read`
        self.reads.append(ReadsSeen(log, tuple(read)))
        self.note_offset()
        await pair.start(MASTER)
        for _ in range(8):
            await asyncio.sleep(3)
            self.note_offset()

    def note_offset(self) -> None:
        services = self.pair.slave.services
        offset = services.offsets.query("G", TOPIC, 0) if services else None
        if offset is not None:
            self.offsets.append(offset)
