"""Programs of consumer groups: a seed, the configuration, and timed faults, as bytes.

The form is that of fuzz/cluster/program.py: six bytes, then four for each fault. There are two name servers
and one broker, with SYNC_FLUSH: the rules of redelivery have no excuse for copies that a crash loses. Groups
of all kinds consume while members join and leave. After the faults, they have time to agree and to receive
everything.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Final

from mqproof.conformance.adapters.workload.workload_clients import Clients, groups
from mqproof.conformance.history.lines import Line, SetupValue
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.recorder import Historian
from mqproof.conformance.history.workload import Workload
from mqproof.conformance.hosts.simulated import MASTER, Cluster, Setup
from mqproof.conformance.suites.flush.steps import End
from mqproof.fuzz.cluster.background import Background
from mqproof.fuzz.cluster.faults import (
    FAULTS,
    STEP_CLOCK,
    FaultInjector,
    faults_of,
    head_of,
    with_random_faults,
)
from mqproof.fuzz.groups import judge
from mqproof.impl.store.config import FlushMode

FAULTS_MAX: Final = 6
_RANDOM_FAULTS_MAX: Final = 4
_AT_S: Final = 0.05
"""The unit of the start of a fault."""
_LENGTHS: Final = 12
_LENGTH_S: Final = 0.5
_SETTLED_S: Final = 15.0
"""Time for retries and delays after the faults."""
_REBALANCE_S: Final = 25.0
"""A group agrees within this time after a change: clients rebalance every 20 s."""
_NETWORK: Final = "network"
_MACHINE: Final = "clients"
_PREFIX: Final = "g"
_KINDS: Final = {
    End.KILL: "kill",
    End.SHUTDOWN: "shutdown",
    End.OS_CRASH: "crash_os",
    End.POWER_LOSS: "lose_power",
}


def random_program(seed: int) -> bytes:
    """Return the program of a seed: any number of messages, and any faults but clock steps."""
    chance = Random(f"groups {seed}")
    return with_random_faults(seed, chance, _RANDOM_FAULTS_MAX)


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str]) -> None:
        self._seed, shape, self._sky = head_of(data)
        # The delays of messages are judged by one clock.
        self._faults = [
            fault for fault in faults_of(data, FAULTS_MAX) if fault[0] % len(FAULTS) != STEP_CLOCK
        ]
        ends = (at * _AT_S + _seconds(length) for _, _, at, length in self._faults)
        self._disturbed_s = max(ends, default=0.0)
        self._messages = 5 + shape // 2 % 16
        self._checked = checked
        self._background = Background()
        self.cluster = Cluster(
            self._background.loop,
            self._seed,
            Setup(FlushMode.SYNC_FLUSH, None, queues=2, property_filter=True),
        )
        self.lines: list[Line] = []

    def run(self) -> None:
        """Run clients and faults. Raises Finding, or an unexpected exception of a background task."""
        self._background.run(self._play())

    async def _play(self) -> None:
        cluster = self.cluster
        machine = cluster.add_machine(_MACHINE)
        historian = Historian(lambda: machine.clock.now_us() * 1000, self._setup())
        self.lines = historian.lines
        await cluster.start_all()
        settle_s = _SETTLED_S + _REBALANCE_S + self._disturbed_s
        workload = Workload(
            self._messages, producers=2, faults=1, seed=self._seed, settle_s=settle_s, poll_pause_s=0.5
        )
        clients = Clients(
            cluster.names[0],
            machine.runtime(),
            historian,
            workload,
            _PREFIX,
            "/offsets",
            same_clock=True,
            filters=True,
        )
        await clients.run(_Nemesis(self, historian), lambda _: None)
        judge.judge(record(historian.lines), self._checked)

    def _setup(self) -> SetupValue:
        return SetupValue(
            name=_MACHINE,
            seed=self._seed,
            groups=groups(_PREFIX, filters=True),
            skew_ms=2,
            rebalance_within_ms=round(1000 * (_REBALANCE_S + self._disturbed_s)),
        )

    async def inject(self, historian: Historian) -> None:
        """Inject all faults of the program, and end them."""
        cluster = self.cluster

        def ends(node: str, how: End) -> None:
            if node == MASTER:
                historian.fault(_KINDS[how], node)

        cluster.on_recovered = lambda node: historian.fault("start", node)
        injector = FaultInjector(cluster, ends)
        cluster.internet.loss = (0.0, 0.0, 0.02, 0.1)[self._sky % 4]
        historian.fault("isolate", _NETWORK)
        for fault in self._faults:
            self._background.inject(self._strike(injector, *fault))
        await asyncio.sleep(self._disturbed_s)
        self._background.end_faults()
        await injector.end_all()
        historian.fault("heal", _NETWORK)

    async def _strike(self, injector: FaultInjector, kind: int, selector: int, at: int, length: int) -> None:
        await asyncio.sleep(at * _AT_S)
        await FAULTS[kind % len(FAULTS)](injector, selector, _seconds(length))


class _Nemesis:
    """Injects the faults of a program as the only fault of a workload."""

    def __init__(self, run: Run, historian: Historian) -> None:
        self._run = run
        self._historian = historian

    async def strike(self, historian: Historian, chance: Random) -> None:  # noqa: ARG002  # a protocol
        await self._run.inject(historian)


def _seconds(length: int) -> float:
    return (1 + length % _LENGTHS) * _LENGTH_S
