"""One random run of two name servers, two brokers and a client, with the routes of the client."""

import asyncio
import random
from typing import Final

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.engine.value_pairs import Row, row_of
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import (
    BROKER_NAMES,
    MASTER,
    NAME_SERVERS,
    OTHER,
    Cluster,
    Setup,
)
from mqproof.conformance.suites.convergence import dimensions
from mqproof.conformance.suites.convergence.checkers import FORGOTTEN_WITHIN_S
from mqproof.conformance.suites.convergence.dimensions import DIMENSIONS, LASTS_S
from mqproof.conformance.suites.convergence.steps import Calm, Fault, Life, Operation, Routed
from mqproof.impl.client.connection.session import Session
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

BROKERS: Final = (MASTER, OTHER)
STEPS: Final = 8
_TOPIC: Final = "TBW102"
"""A topic that every broker has."""
_CLIENT: Final = "client"
_LOOK_S: Final = 15.0
_NODES: Final = {
    "a broker": (MASTER,),
    "both brokers": BROKERS,
    "a name server": NAME_SERVERS[:1],
    "both name servers": NAME_SERVERS,
    "a broker and a name server": (MASTER, NAME_SERVERS[0]),
}


def live(seed: int) -> Life:
    """Run a cluster and return the observations; the seed determines everything."""
    loop = SimulatedLoop()

    async def main() -> Life:
        cluster = Cluster(loop, seed, Setup(replication=None, other=True))
        await cluster.start_all()
        session = cluster.session(_CLIENT)
        await session.start()
        try:
            return await _Run(cluster, session, random.Random(f"{seed} steps")).watch(
                row_of(DIMENSIONS, seed)
            )
        finally:
            await session.stop()
            for node in (*cluster.brokers, *cluster.name_servers):
                cluster.kill(node)

    with expected_warnings("mqproof.impl"), simulated_loops.failures_reported():
        return run_simulated(main(), loop)


class _Run:
    """The faults, and the observations of the client."""

    def __init__(self, cluster: Cluster, session: Session, chance: random.Random) -> None:
        self._cluster = cluster
        self._session = session
        self._chance = chance
        self._operations: list[Operation] = []

    async def watch(self, row: Row) -> Life:
        """Perform the drawn steps, meet the row, end the faults, and return the observations."""
        await self._look()
        for _ in range(STEPS):
            await self._step()
            await self._look()
        await self._meet(row)
        await self._calm()
        return Life(tuple(self._operations))

    async def _step(self) -> None:
        cluster, chance, drawn = self._cluster, self._chance, self._chance.random()
        if drawn < 0.3:
            self._end(chance.choice(BROKERS))
        elif drawn < 0.5:
            self._end(chance.choice(NAME_SERVERS))
        elif drawn < 0.7:
            for node in (*NAME_SERVERS, *BROKERS):
                await self._start(node)
        elif drawn < 0.85:
            one, other = chance.choice((_CLIENT, *BROKERS)), chance.choice(NAME_SERVERS)
            cluster.internet.cut(cluster.links(one, other))
            self._operations.append(Fault(f"{one} and {other} are cut off from each other"))
        else:
            cluster.internet.heal()
            self._operations.append(Fault("all links work again"))
        await asyncio.sleep(chance.choice((0, 5, 40, 150)))

    async def _meet(self, row: Row) -> None:
        """Let all nodes run, and inject the fault of the row."""
        await self._all_run()
        await self._look()
        nodes, fault = _NODES[row[dimensions.NODES]], row[dimensions.FAULT]
        self._fail(nodes, fault)
        self._operations.append(Fault(f"fault of {row[dimensions.NODES]}: {fault}"))
        await self._look()
        await self._meanwhile(row[dimensions.MEANWHILE])
        await asyncio.sleep(LASTS_S[row[dimensions.LASTS]])
        self._operations.append(Fault(f"the fault lasts {row[dimensions.LASTS]}"))
        await self._look()

    async def _all_run(self) -> None:
        self._cluster.internet.heal()
        for node in (*NAME_SERVERS, *BROKERS):
            await self._start(node)

    def _fail(self, nodes: tuple[str, ...], fault: str) -> None:
        cluster = self._cluster
        others = (_CLIENT,) if fault == "cut off from the client" else (_CLIENT, *NAME_SERVERS, *BROKERS)
        for node in nodes:
            if fault.startswith("cut off"):
                for other in others:
                    if other != node:
                        cluster.internet.cut(cluster.links(node, other))
            else:
                self._end(node, dark=fault == "power lost")

    async def _meanwhile(self, what: str) -> None:
        node = {"the other broker restarts": OTHER, "a name server restarts": NAME_SERVERS[1]}.get(what)
        if node is not None:
            self._end(node, dark=False)
            await asyncio.sleep(1)
            await self._start(node)
        self._operations.append(Fault(f"during the fault, {what}"))

    def _end(self, node: str, *, dark: bool | None = None) -> None:
        """End a node if it runs; `dark` says whether its machine loses power, and None draws it."""
        cluster = self._cluster
        if node in cluster.brokers or node in cluster.name_servers:
            if dark is None:
                dark = self._chance.random() < 0.5
            (cluster.lose_power if dark else cluster.kill)(node)
            self._operations.append(Fault(f"{node} {'loses its power' if dark else 'is killed'}"))

    async def _start(self, node: str) -> None:
        if node not in self._cluster.brokers and node not in self._cluster.name_servers:
            await self._cluster.start(node)
            self._operations.append(Fault(f"{node} starts"))

    async def _calm(self) -> None:
        """End all faults, with one broker or both of them up, and look until a dead broker is forgotten."""
        cluster = self._cluster
        await self._all_run()
        up = {MASTER, OTHER}
        if self._chance.random() < 0.5:
            down = self._chance.choice(BROKERS)
            await asyncio.sleep(self._chance.choice((0, 40)))
            self._end(down)
            up.discard(down)
        self._operations.append(Calm(cluster.now_s, frozenset(BROKER_NAMES[node] for node in up)))
        for _ in range(int(FORGOTTEN_WITHIN_S / _LOOK_S) + 2):
            await asyncio.sleep(_LOOK_S)
            await self._look()

    async def _look(self) -> None:
        """Record the route that the client would use now."""
        try:
            route = await self._session.routes.get(_TOPIC)
        except RemotingError:
            route = None
        names = frozenset(data.broker_name for data in route.broker_datas) if route else frozenset[str]()
        self._operations.append(Routed(self._cluster.now_s, names))
