"""A DLedger group on simulated time, network, disks and clocks. One seed determines the whole run.

The members are the real ones (impl/dledger/member.py: core, ledger, ballot file). Only their environment is
simulated. An event queue replaces the event loop, so that an hour of an idle group costs about a second.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from mqproof.fuzz.raft.judge import History, Seen, reads_current
from mqproof.impl.dledger.changes import Change, Committed, SteppedDown
from mqproof.impl.dledger.codes import ResponseCode
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.ledger import Ledger, LedgerConfig
from mqproof.impl.dledger.member import Member
from mqproof.impl.dledger.pending import Pending
from mqproof.impl.dledger.rpc_bodies import NORMAL, Entry, Request, Response
from mqproof.impl.dledger.state import Role
from mqproof.impl.runtime.simulated_disk import Image, SimulatedCrashError, SimulatedDisk, Step

SMALL_LEDGER: Final = LedgerConfig(data_segment_bytes=8192, index_segment_bytes=1024 * 32)
_DISK_MS: Final = (0.2, 4.0)
"""The time a sync takes to reach the disk, and again until the member is notified."""

_AGAIN_MS: Final = 100.0
"""Delay before a member that crashed during its start is started again."""

Watch = Callable[[str, Change, Entry | None], None]


@dataclass(slots=True)
class Weather:
    """The network conditions that apply to messages."""

    loss: float = 0.0
    repeat: float = 0.0
    delay_ms: tuple[float, float] = (0.3, 3.0)
    late: float = 0.0
    """The fraction of messages that are late, so that later messages overtake them."""
    late_ms: float = 1000.0
    """The longest delay of a late message."""


@dataclass(slots=True)
class _Sent:
    """An entry whose result a client waits for."""

    index: int
    entry: Seen


class Node:
    """A machine with at most one member running on it."""

    def __init__(self, name: str, config: GroupConfig) -> None:
        self.name = name
        self.config = config
        self.disk = SimulatedDisk()
        self.member: Member | None = None
        self.life = 0
        self.skew_ms = 0.0
        self.paused_until = 0.0
        self.disk_slowness = 1.0
        self.is_flushing = False
        self.wakes_at = float("inf")
        self.pending: Pending[_Sent] = Pending()


@dataclass(slots=True)
class Observer:
    """Receives the events of the group, in addition to the judge."""

    changed: Watch = lambda _name, _change, _entry: None
    flushed: Callable[[str, int], None] = lambda _name, _index: None
    acked: Callable[[str, int, int], None] = lambda _name, _index, _term: None
    died: Callable[[str], None] = lambda _name: None
    started: Callable[[str, Member], None] = lambda _name, _member: None


@dataclass(slots=True)
class Group:
    """A group of `members` machines. All are down until `start`."""

    seed: int
    members: int = 3
    checked: Counter[str] = field(default_factory=Counter)
    observer: Observer = field(default_factory=Observer)
    preferred: tuple[str, ...] = ()
    batch_entries_max: int = 64
    now_ms: float = 0.0
    weather: Weather = field(default_factory=Weather)
    cut: set[tuple[str, str]] = field(default_factory=set)
    """Directed links on which no message arrives."""
    slow: dict[tuple[str, str], float] = field(default_factory=dict)
    """Directed links on which messages are late, by that many milliseconds."""
    nodes: dict[str, Node] = field(default_factory=dict)
    history: History = field(init=False)
    chance: Random = field(init=False)
    steps: int = 0
    sent: int = 0
    leases_hold_from_ms: float = 0.0
    """Until then a leader may count the answer of a member that restarted, or a clock has been set."""
    _queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _number: int = 0

    def __post_init__(self) -> None:
        names = tuple(f"n{number}" for number in range(self.members))
        self.chance = Random(self.seed)
        self.history = History(names, self.checked)
        for name in names:
            config = GroupConfig(
                "g",
                name,
                names,
                preferred_leaders=self.preferred,
                batch_entries_max=self.batch_entries_max,
            )
            self.nodes[name] = Node(name, config)

    # -- time

    def after(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self._number += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._number, action))

    def run(self, until_ms: float) -> None:
        """Advance simulated time to `until_ms` and run the actions that are due. Raises Finding."""
        queue = self._queue
        while queue and queue[0][0] <= until_ms:
            self.now_ms, _, action = heapq.heappop(queue)
            self.steps += 1
            action()
        self.now_ms = until_ms

    # -- machines

    def start(self, name: str) -> None:
        """Start the member from the content of its disk."""
        node = self.nodes[name]
        if node.member is not None:
            return

        def on_change(change: Change, entry: Entry | None) -> None:
            if type(change) is SteppedDown:
                self.history.stepped_down(name)
            self.history.record(name, change, entry)
            self.observer.changed(name, change, entry)
            if type(change) is Committed:
                self._acknowledge(node)

        chance = Random(self.chance.getrandbits(64))
        now = self.now_ms + node.skew_ms
        try:
            kept = Ledger(node.disk, f"/{name}", SMALL_LEDGER)
            node.member = Member(node.config, node.disk, f"/{name}", chance, now, on_change, kept)
        except (SimulatedCrashError, OSError) as error:  # it crashed during recovery
            self._die(name, None if isinstance(error, OSError) else self.chance)
            self.after(_AGAIN_MS, lambda: self.start(name))
            return
        self._doubt_leases(node.config.give_up_ms)
        node.is_flushing = False
        node.paused_until = 0.0
        ledger = node.member.ledger
        left = range(ledger.begin_index, ledger.end_index + 1)
        self.history.recovered(name, [ledger.read(index) for index in left])
        self.observer.started(name, node.member)
        self._wake(node)

    def kill(self, name: str) -> None:
        """Kill the process; the page cache is kept."""
        self._die(name, None)

    def lose_power(self, name: str) -> None:
        """Cut the power of the machine; only synced data is kept."""
        self._die(name, Image())

    def crash(self, name: str) -> None:
        """Crash the machine.

        Any part of the unsynced data is kept, and the last record may be torn at any byte.
        """
        self._die(name, self.chance)

    def crash_at_step(self, name: str, step: int, *, error: bool = False) -> None:
        """Crash the machine, or make its disk fail, at one of the next steps of its disk."""
        node, left = self.nodes[name], step

        def on_step(_: Step) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                node.disk.on_step = None
                raise OSError("the disk failed") if error else SimulatedCrashError

        node.disk.on_step = on_step

    def pause(self, name: str, until_ms: float) -> None:
        """Suspend the process and continue it later. Messages that arrive in between wait."""
        self.nodes[name].paused_until = until_ms

    def expire(self, name: str) -> None:
        """Delete the segments that all members hold durably, as the member's store does.

        The last one is kept.
        """
        node = self.nodes[name]
        if node.member is None or node.paused_until > self.now_ms:
            return
        ledger, kept = node.member.ledger, node.member.core.state.kept_by_all
        if kept < ledger.begin_index:
            return
        try:
            kept_pos = ledger.position_of(kept)
            before = max((start for start in ledger.data.starts[1:] if start <= kept_pos), default=0)
            ledger.data.detach_before(before).carry_out()
            ledger.forget_deleted().carry_out()
        except SimulatedCrashError:
            self.crash(name)
        except OSError:
            self.kill(name)

    def step_clock(self, name: str, by_ms: float) -> None:
        """Change the node's clock by `by_ms`."""
        node = self.nodes[name]
        node.skew_ms += by_ms
        self._doubt_leases(node.config.give_up_ms + abs(by_ms))
        if node.member is not None:
            self._wake(node)

    def _doubt_leases(self, for_ms: float) -> None:
        self.leases_hold_from_ms = max(self.leases_hold_from_ms, self.now_ms + for_ms)

    def _die(self, name: str, kept: Random | Image | None) -> None:
        node = self.nodes[name]
        node.disk.on_step = None
        if node.member is not None:
            node.member = None
            node.life += 1
            node.pending.drop()
            node.wakes_at = float("inf")
            self.history.died(name)
            self.observer.died(name)
        if kept is None:
            node.disk.crash_process()
        else:
            node.disk.crash_os(kept)

    # -- clients

    def send(self, body: bytes) -> bool:
        """Send an entry to the member that claims to lead, else to any. Returns whether it was accepted."""
        up = [node for node in self.nodes.values() if node.member and node.paused_until <= self.now_ms]
        leaders = [node for node in up if node.member and node.member.core.state.role is Role.LEADER]
        if not (leaders or up):
            return False
        node = self.chance.choice(leaders or up)
        assert node.member is not None, "it is up"
        code, index = node.member.core.append(body, self.now_ms + node.skew_ms)
        if code is ResponseCode.SUCCESS:
            term = node.member.core.state.term
            node.pending.add(index, term, _Sent(index, Seen(term, NORMAL, body)))
        self._step(node)
        return code is ResponseCode.SUCCESS

    def _acknowledge(self, node: Node) -> None:
        """Acknowledge the entries that this leader accepted, when they are committed in its term."""
        assert node.member is not None, "it has just committed"
        state = node.member.core.state
        for each in node.pending.committed(state.commit, state.term):
            self.history.acked.append((each.index, each.entry))
            self.observer.acked(node.name, each.index, each.entry.term)

    # -- what keeps a member running

    def _step(self, node: Node, not_before: float = 0.0) -> None:
        """Run the member until it has processed its last input, and send its requests and answers."""
        member = node.member
        assert member is not None, f"{node.name} is down"
        try:
            requests, answers = member.step(max(not_before, self.now_ms + node.skew_ms))
        except SimulatedCrashError:
            self.crash(node.name)
            return
        except OSError:
            self.kill(node.name)  # a member whose disk failed sends nothing more
            return
        for request in requests:
            self._send(node.name, request.remote_id, request)
        for asked, response in answers:
            self._send(node.name, asked.local_id, asked, response)
        if member.has_unsynced and not node.is_flushing:
            self._flush(node, member)
        if node.member is member:  # its disk may have ended it
            self._wake(node)
        if self.now_ms >= self.leases_hold_from_ms:
            self._judge_reads()

    def _judge_reads(self) -> None:
        """Judge every member that may answer a client now. Raises Finding."""
        for node in self.nodes.values():
            if node.member and node.paused_until <= self.now_ms:
                core = node.member.core
                if core.state.role is Role.LEADER and core.leads(self.now_ms + node.skew_ms):
                    reads_current(self.history, node.name, core.state.term)

    def _send(self, source: str, target: str, request: Request, response: Response | None = None) -> None:
        chance, weather = self.chance, self.weather
        self.sent += 1
        if weather.loss and chance.random() < weather.loss:
            return
        times = 2 if weather.repeat and chance.random() < weather.repeat else 1
        for _ in range(times):
            low, high = weather.delay_ms
            delay = low + (high - low) * chance.random()
            delay += self.slow.get((source, target), 0.0)
            if weather.late and chance.random() < weather.late:
                delay += weather.late_ms * chance.random()
            self.after(delay, lambda: self._arrive(source, target, request, response))

    def _arrive(self, source: str, target: str, request: Request, response: Response | None) -> None:
        if (source, target) in self.cut:
            return
        node = self.nodes[target]
        if node.member is None:
            return
        if node.paused_until > self.now_ms:
            self.after(
                node.paused_until - self.now_ms, lambda: self._arrive(source, target, request, response)
            )
            return
        now = self.now_ms + node.skew_ms
        if response is None:
            node.member.core.handle(request, now)
        else:
            node.member.core.answered(request, response, now)
        self._step(node)

    def _wake(self, node: Node) -> None:
        """Schedule the member's next timer."""
        assert node.member is not None, f"{node.name} is down"
        at = max(self.now_ms, node.member.core.deadline() - node.skew_ms)
        if at < node.wakes_at or node.wakes_at < self.now_ms:
            node.wakes_at = at
            life = node.life
            self.after(at - self.now_ms, lambda: self._tick(node, life, at))

    def _tick(self, node: Node, life: int, at: float) -> None:
        if node.member is None or node.life != life or node.wakes_at != at:
            return
        node.wakes_at = float("inf")
        if node.paused_until > self.now_ms:
            node.wakes_at = node.paused_until
            self.after(node.paused_until - self.now_ms, lambda: self._tick(node, life, node.paused_until))
            return
        deadline = node.member.core.deadline()
        if deadline - node.skew_ms <= self.now_ms:
            # The timer is due, although rounding may make the sum slightly less.
            node.member.core.tick(max(deadline, self.now_ms + node.skew_ms))
            self._step(node, deadline)
        else:
            self._wake(node)

    def _flush(self, node: Node, member: Member) -> None:
        node.is_flushing = True
        life = node.life
        try:
            flush = member.begin_flush()
        except SimulatedCrashError:
            self.crash(node.name)
            return
        except OSError:
            self.kill(node.name)
            return

        def sync() -> None:
            if node.life != life:
                return
            try:
                flush.sync()
            except SimulatedCrashError:
                self.crash(node.name)
                return
            except OSError:
                self.kill(node.name)
                return
            if (index := member.ledger.end_flush(flush)) >= 0:
                self.observer.flushed(node.name, index)
            self.after(node.disk_slowness * self.chance.uniform(*_DISK_MS), done)

        def done() -> None:
            if node.life != life:
                return
            if node.paused_until > self.now_ms:
                self.after(node.paused_until - self.now_ms, done)
                return
            node.is_flushing = False
            member.end_flush(flush)
            self._step(node)

        self.after(node.disk_slowness * self.chance.uniform(*_DISK_MS), sync)
