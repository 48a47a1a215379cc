"""Programs of transactions and timers: a seed, the configuration, and timed faults, as bytes.

The form is that of fuzz/cluster/program.py: six bytes, then four for each fault. The operations of producers
are drawn from the seed. After the faults comes the calm: the faults have ended, every transaction must end,
and every message must become visible at its time.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Final

from mqproof.conformance.hosts.simulated import STORE, Cluster, Setup
from mqproof.conformance.suites.transactions.target import End
from mqproof.fuzz.cluster import judge as cluster_judge
from mqproof.fuzz.cluster.background import Background
from mqproof.fuzz.cluster.faults import (
    QUARTER_S,
    FaultInjector,
    expire,
    faults_of,
    head_of,
    seconds_of,
    with_random_faults,
)
from mqproof.fuzz.deferred import judge
from mqproof.fuzz.deferred.observations import Timed, Transaction
from mqproof.fuzz.deferred.producers import Producers
from mqproof.fuzz.deferred.witness import Witness
from mqproof.impl.store.config import FlushMode

FAULTS_MAX: Final = 10
_RANDOM_FAULTS_MAX: Final = 8
CALM_S: Final = 120.0
"""The time after the faults within which the cluster must serve."""
_ENDS_S: Final = 60.0
"""The time after that within which every transaction must end."""
_LOST_S: Final = 30.0
"""A message that is this late is lost."""
_AFTER_S: Final = 8.0
_STEP_S: Final = 5.0
_SYNC: Final = 96
_ELECTED: Final = 208
"""Shape bytes: from `_SYNC` a broker with SYNC_FLUSH, from `_ELECTED` a group that elects its master."""
_EXPIRE: Final = 255
"""The number of the operation that deletes old segments. Such a program has no transactions: half messages
would be deleted before their checks, and only a timer keeps the log.
"""
_SMALL_STORE: Final = replace(STORE, commit_log_segment_bytes=1 << 12, file_reserved_ms=10_000)
_CHECK_INTERVAL_MS: Final = 5000
_CHECKS_MAX: Final = 4


def random_program(seed: int) -> bytes:
    """Return the program of a seed: any cluster and faults. Every third one deletes old segments."""
    chance = Random(f"deferred {seed}")
    drawn = with_random_faults(seed, chance, _RANDOM_FAULTS_MAX)
    if chance.randrange(3) == 0:
        drawn += bytes((_EXPIRE, *chance.randbytes(2), 79))
    return drawn


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str]) -> None:
        seed, shape, self._sky = head_of(data)
        self._faults = faults_of(data, FAULTS_MAX)
        self._has_transactions = all(kind != _EXPIRE for kind, *_ in self._faults)
        setup = Setup(
            FlushMode.SYNC_FLUSH if shape >= _SYNC else FlushMode.ASYNC_FLUSH,
            None,
            elected=shape >= _ELECTED,
            store=STORE if self._has_transactions else _SMALL_STORE,
            transaction_check_interval_ms=_CHECK_INTERVAL_MS,
            transaction_checks_max=_CHECKS_MAX,
        )
        self._checked = checked
        self._background = Background()
        self.cluster = Cluster(self._background.loop, seed, setup)
        self.witness = Witness(self.cluster, checked, self._background.failures.append)
        self._injector = FaultInjector(self.cluster, self.witness.dies, self.witness.clock_was_set)
        pause_s = (1.5, 0.8, 0.4, 0.2)[shape // 8 % 4]
        self._producers = Producers(self.cluster, self.witness, Random(f"{seed} producers"), pause_s)

    def run(self) -> None:
        """Run the faults, then the calm. Raises Finding, or any unexpected exception of a background task."""
        self._background.run(self._play())

    async def _play(self) -> None:
        cluster, background = self.cluster, self._background
        await cluster.start_all()
        internet = cluster.internet
        internet.loss = (0.0, 0.0, 0.02, 0.1)[self._sky % 4]
        internet.delay_s = ((0.0002, 0.001), (0.02, 0.1), (0.0002, 0.001), (0.001, 0.5))[self._sky // 4 % 4]
        if self._has_transactions:
            background.do(self._producers.send_transactions())
        background.do(self._producers.send_timed())
        for fault in self._faults:
            background.inject(self._strike(*fault))
        last = max((at * QUARTER_S for _, _, at, _ in self._faults), default=0.0)
        end_s = cluster.now_s + last + _AFTER_S
        while cluster.now_s < end_s and not background.failures:
            await asyncio.sleep(min(_STEP_S, end_s - cluster.now_s))
            self.witness.look()
        if not background.failures:
            await self._calm()

    async def _strike(self, kind: int, selector: int, at: int, length: int) -> None:
        await asyncio.sleep(at * QUARTER_S)
        if kind == _EXPIRE:
            await expire(self._injector, selector, seconds_of(length))
        else:
            await self._injector.strike(kind, selector, length)

    # -- the calm

    async def _calm(self) -> None:
        """End all faults, start all nodes, and check that the broker keeps its promises."""
        self._producers.is_sending = False
        self._background.end_faults()
        await self._injector.end_all()
        end_s = self.cluster.now_s + CALM_S
        while (status := await self._producers.is_served()) != "SEND_OK" and self.cluster.now_s < end_s:
            await asyncio.sleep(1)
        cluster_judge.send_answered(status, CALM_S, self._checked)
        served_ms = self.witness.now_ms
        await self._end_transactions()
        await self._await_timed()
        witness = self.witness
        found, seen = witness.trails(), witness.seen()
        timed = witness.timed.values()
        judge.transaction_atomic(witness.transactions, found, self._checked, is_over=True)
        if witness.clocks_agree:
            judge.timer_kept(timed, seen, _LOST_S, self._checked)
            judge.timer_delivered(timed, seen, served_ms, self._checked)
            left = {one.name for one in timed if one.is_promised and one.has_level and one.name not in seen}
            cluster_judge.acked_delivered(left, _LOST_S, self._checked)

    async def _end_transactions(self) -> None:
        """End some open transactions by a request; the others must be ended by checks."""
        by_request = False
        for one in list(self.witness.transactions.values()):
            if one.decision is None:
                one.decision = End.COMMIT
            if one.requested or not one.is_promised or self._has_ended(one):
                continue
            by_request = not by_request
            if by_request:
                refusal = await self._producers.end_by_request(one, End.COMMIT)
                if refusal != "unknown":
                    ended = self._has_ended(one)
                    judge.half_kept(one.name, "" if ended else refusal, self._checked)
        end_s = self.cluster.now_s + _ENDS_S
        while (left := list(self._open())) and self.cluster.now_s < end_s:
            await asyncio.sleep(1)
        if self.witness.transactions:
            judge.transaction_ends([one.name for one in left], _ENDS_S, self._checked)

    def _has_ended(self, one: Transaction) -> bool:
        trail = self.witness.trails().get(one.name)
        return trail is not None and bool(trail.ends)

    def _open(self) -> Iterable[Transaction]:
        found = self.witness.trails()
        for one in self.witness.transactions.values():
            trail = found.get(one.name)
            if one.is_promised and not (trail and trail.ends):
                yield one

    async def _await_timed(self) -> None:
        """Wait until all messages are visible, or long after the time of the last one that is not."""
        while waiting := list(self._waiting()):
            late_ms = self.witness.now_ms - max(one.latest_due_ms for one in waiting)
            if late_ms > _LOST_S * 1000:
                return
            await asyncio.sleep(1)

    def _waiting(self) -> Iterable[Timed]:
        seen = self.witness.seen()
        return (
            one
            for one in self.witness.timed.values()
            if one.is_promised and not one.is_recalled and one.name not in seen
        )
