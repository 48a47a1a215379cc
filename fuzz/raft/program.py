"""Programs for a DLedger group: a seed, the network conditions, and timed faults, as bytes.

The first six bytes describe the group. Each fault is four bytes: kind, target, start time and duration (in
quarters of a second). Missing bytes are read as zeros, so any bytes are a valid program. A shorter program
has fewer faults, members or messages, so findings are made small by shortening. After the faults comes the
calm: the faults have ended and the group must make progress.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from mqproof.fuzz.raft.judge import leader_eventually, logs_converge, no_acked_lost
from mqproof.fuzz.raft.simulated_group import Group, Observer, Weather
from mqproof.impl.dledger.codes import ResponseCode
from mqproof.impl.dledger.state import Role

HEAD_BYTES: Final = 6
FAULT_BYTES: Final = 4
FAULTS_MAX: Final = 26
_RANDOM_FAULTS_MAX: Final = 24
_BODY_BYTES: Final = 150
_QUARTER_MS: Final = 250.0
_AFTER_MS: Final = 8_000.0
"""Time between the start of the last fault and the calm.

It is long enough for the remaining members to elect a leader.
"""
CALM_MS: Final = 60_000.0
"""Time limit for one leader to lead all others, and for the logs to converge.

It is long enough for several rounds of timeout and vote.
"""
_EXPIRY_MS: Final = 700.0
_LOOK_MS: Final = 20.0
"""How often a fault looks for the state that it waits for."""
_LATE_MS: Final = (1_000.0, 6_000.0)
"""How late messages may be: within a round of votes, or later than a round and than every RPC timeout."""
_LOADS: Final = (1.0, 5.0, 10.0, 30.0)
"""The possible rates of sends, in messages per second."""


def random_program(seed: int) -> bytes:
    """Return the program of a seed: any network conditions, load and faults."""
    chance = Random(seed)
    faults = chance.randint(1, _RANDOM_FAULTS_MAX)
    drawn = bytearray(seed.to_bytes(8, "little")[:4] + chance.randbytes(2 + FAULT_BYTES * faults))
    for at in range(HEAD_BYTES, len(drawn), FAULT_BYTES):
        if drawn[at] == _EXPIRE:
            drawn[at] %= len(_FAULTS)
    return bytes(drawn) + _random_expiry(Random(f"expiry {seed}"))


def _random_expiry(chance: Random) -> bytes:
    """Return one or two expiry operations for half of all programs, and none for the rest.

    They are drawn from a separate generator, so that they do not change the other faults of the seed.
    """
    times = chance.choice((0, 0, 1, 2))
    return b"".join(bytes((_EXPIRE, *chance.randbytes(FAULT_BYTES - 1))) for _ in range(times))


def toppling_program(seed: int) -> bytes:
    """Return the program of a seed in which each leader fails soon after its election.

    This exercises repeatedly what a new leader does first with the entries of earlier leaders. Entries are
    sent one at a time, on a slow network.
    """
    chance = Random(f"topple {seed}")
    one_by_one = 128 | chance.choice((0, 32, 64))
    slow = 64 | chance.choice((1, 2, 3))
    topples = b"".join(bytes((_TOPPLE, chance.randrange(256), at, 79)) for at in (8, 90, 170, 250))
    return seed.to_bytes(8, "little")[:4] + bytes((one_by_one, slow)) + topples


def rejoining_program(seed: int) -> bytes:
    """Return the program of a seed in which leaders are cut off, truncate their logs, and crash.

    Many entries are sent, so that a leader that is cut off has many that conflict.
    """
    chance = Random(f"rejoin {seed}")
    many = 96
    rejoins = b"".join(bytes((_REJOIN, chance.randrange(256), at, 79)) for at in (8, 110))
    return seed.to_bytes(8, "little")[:4] + bytes((many, chance.choice((0, 64)))) + rejoins


def late_vote_program(seed: int) -> bytes:
    """Return the program of a seed in which votes reach their candidates in a later round and term."""
    chance = Random(f"late vote {seed}")
    slow = 64
    votes = b"".join(bytes((_LATE_VOTE, chance.randrange(256), at, 79)) for at in (8, 60, 120))
    return seed.to_bytes(8, "little")[:4] + bytes((0, slow)) + votes


def partial_cut_program(seed: int) -> bytes:
    """Return the program of a seed in which a follower loses only the link to its leader, several times.

    Nothing is sent meanwhile, so that the log of the follower is as good as any.
    """
    chance = Random(f"partial cut {seed}")
    five = chance.choice((0, 7))
    cuts = b"".join(bytes((_PARTIAL_CUT, chance.randrange(256), at, 59)) for at in (40, 110, 180))
    return seed.to_bytes(8, "little")[:4] + bytes((five, chance.choice((0, 64)))) + cuts


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str], observer: Observer | None = None) -> None:
        head = data[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
        self._size, self._sky = head[4], head[5]
        self._faults = [
            tuple(data[at : at + FAULT_BYTES].ljust(FAULT_BYTES, b"\0"))
            for at in range(HEAD_BYTES, min(len(data), HEAD_BYTES + FAULTS_MAX * FAULT_BYTES), FAULT_BYTES)
        ]
        members = 5 if self._size % 8 == 7 else 3
        preferred = ("n1",) if self._size // 8 % 4 == 3 else ()
        self.group = Group(
            int.from_bytes(head[:4], "little"),
            members,
            checked,
            observer or Observer(),
            preferred,
            1 if self._size // 128 else 64,
        )
        self._names = tuple(self.group.nodes)
        self._load = _LOADS[self._size // 32 % 4]
        self._messages = 0
        self._quiet_until_ms = 0.0

    @property
    def seconds(self) -> float:
        """The simulated time that has passed, in seconds."""
        return self.group.now_ms / 1000

    def run(self) -> None:
        """Run the faults, then the calm. Raises Finding."""
        group = self.group
        for name in self._names:
            group.start(name)
        group.weather = Weather(
            loss=(0.0, 0.02, 0.1, 0.3)[self._sky % 4],
            repeat=(0.0, 0.05, 0.3, 0.0)[self._sky // 4 % 4],
            late=(0.0, 0.02, 0.1, 0.0)[self._sky // 16 % 4],
            delay_ms=((0.3, 3.0), (20.0, 120.0))[self._sky // 64 % 2],
            late_ms=_LATE_MS[self._sky // 128],
        )
        self._send_later()
        for fault in self._faults:
            self._plan(*fault)
        last = max((at * _QUARTER_MS for _, _, at, _ in self._faults), default=0.0)
        group.run(last + _AFTER_MS)
        self._calm()

    def _send_later(self) -> None:
        if self.group.now_ms >= self._quiet_until_ms:
            self._messages += 1
            self.group.send(b"%d " % self._messages + b"x" * (self._messages % _BODY_BYTES))
        self.group.after(1000 / self._load, self._send_later)

    def _plan(self, kind: int, selector: int, at: int, length: int) -> None:
        fault = _OTHERS.get(kind) or _FAULTS[kind % len(_FAULTS)]
        until_ms = (at + 1 + length % 80) * _QUARTER_MS
        self.group.after(at * _QUARTER_MS, lambda: fault(self, selector, until_ms))

    def _calm(self) -> None:
        """End all faults, start all members, and check that the group keeps its promises."""
        group = self.group
        group.weather = Weather()
        group.cut.clear()
        group.slow.clear()
        for name, node in group.nodes.items():
            node.disk.on_step = None
            node.disk_slowness = 1.0
            node.paused_until = 0.0
            group.start(name)
        began = group.now_ms
        while (leader := self._leader()) is None and group.now_ms < began + CALM_MS:
            group.run(group.now_ms + 500)
        leader_eventually(group.history, leader, CALM_MS / 1000)
        self._load = 1e-9  # the last message is in transit: no more are sent
        while not self._is_one() and group.now_ms < began + 2 * CALM_MS:
            group.run(group.now_ms + 500)
        logs_converge(group.history, self._ends(), 2 * CALM_MS / 1000)
        for name in self._names:
            no_acked_lost(group.history, name)

    def _leader(self) -> str | None:
        """Return the member that leads all others, or None."""
        states = {name: node.member.core.state for name, node in self.group.nodes.items() if node.member}
        for name, state in states.items():
            if state.role is Role.LEADER and all(other.leader == name for other in states.values()):
                return name
        return None

    def _ends(self) -> dict[str, tuple[int, int]]:
        members = {name: node.member for name, node in self.group.nodes.items()}
        return {
            name: (member.core.state.terms.end, member.core.state.commit) if member else (-1, -1)
            for name, member in members.items()
        }

    def _is_one(self) -> bool:
        ends = set(self._ends().values())
        return len(ends) == 1 and all(end == commit for end, commit in ends) and self._leader() is not None

    # -- faults

    def name(self, selector: int) -> str:
        """Return a member; for `selector` of 128 and more a current leader, if there is one."""
        leaders = [
            name
            for name, node in self.group.nodes.items()
            if node.member and node.member.core.state.role is Role.LEADER
        ]
        if selector >= 128 and leaders:
            return leaders[selector % len(leaders)]
        return self._names[selector % len(self._names)]

    def _down(self, selector: int, until_ms: float, crash: Callable[[str], None]) -> None:
        name = self.name(selector)
        crash(name)
        self.group.after(until_ms - self.group.now_ms, lambda: self.group.start(name))

    def _cut(self, links: set[tuple[str, str]], until_ms: float) -> None:
        group = self.group
        group.cut |= links
        group.after(until_ms - group.now_ms, lambda: group.cut.difference_update(links))


def _kill(run: Run, selector: int, until_ms: float) -> None:
    run._down(selector, until_ms, run.group.kill)


def _lose_power(run: Run, selector: int, until_ms: float) -> None:
    run._down(selector, until_ms, run.group.lose_power)


def _crash(run: Run, selector: int, until_ms: float) -> None:
    run._down(selector, until_ms, run.group.crash)


def _crash_all(run: Run, selector: int, until_ms: float) -> None:
    """Fail all machines at the same time, by crash or power loss. Each restarts after its own delay."""
    group = run.group
    for number, name in enumerate(run._names):
        group.lose_power(name) if selector % 2 else group.crash(name)
        down_ms = until_ms - group.now_ms + 100 * (number * selector % 7)
        group.after(down_ms, lambda name=name: group.start(name))  # type: ignore[misc]


def _crash_at_step(run: Run, selector: int, until_ms: float) -> None:
    name = run.name(selector)
    run.group.crash_at_step(name, selector % 23)
    run.group.after(until_ms - run.group.now_ms, lambda: run.group.start(name))


def _disk_fails(run: Run, selector: int, until_ms: float) -> None:
    name = run.name(selector)
    run.group.crash_at_step(name, selector % 23, error=True)
    run.group.after(until_ms - run.group.now_ms, lambda: run.group.start(name))


def _restart(run: Run, selector: int, _until_ms: float) -> None:
    """Restart a member within milliseconds, before other members can notice."""
    name = run.name(selector)
    run.group.crash(name) if selector % 2 else run.group.lose_power(name)
    run.group.after(5.0 + selector % 64, lambda: run.group.start(name))


def _isolate(run: Run, selector: int, until_ms: float) -> None:
    run._cut(_links_of(run, run.name(selector)), until_ms)


def _deafen(run: Run, selector: int, until_ms: float) -> None:
    """Cut all incoming links of a member: it can send but not receive."""
    one = run.name(selector)
    run._cut({(other, one) for other in run._names}, until_ms)


def _mute(run: Run, selector: int, until_ms: float) -> None:
    """Cut all outgoing links of a member: it can receive but not send."""
    one = run.name(selector)
    run._cut({(one, other) for other in run._names}, until_ms)


def _cut_link(run: Run, selector: int, until_ms: float) -> None:
    one, other = run.name(selector), run._names[selector // 16 % len(run._names)]
    run._cut({(one, other), (other, one)} if selector % 2 else {(one, other)}, until_ms)


def _pause(run: Run, selector: int, until_ms: float) -> None:
    run.group.pause(run.name(selector), until_ms)


def _step_clock(run: Run, selector: int, until_ms: float) -> None:
    by_ms = until_ms - run.group.now_ms
    run.group.step_clock(run.name(selector), by_ms / 4 if selector % 2 else -by_ms / 4)


def _slow_disk(run: Run, selector: int, until_ms: float) -> None:
    node = run.group.nodes[run.name(selector)]
    node.disk_slowness = 100.0

    def end() -> None:
        node.disk_slowness = 1.0

    run.group.after(until_ms - run.group.now_ms, end)


def _transfer(run: Run, selector: int, _until_ms: float) -> None:
    """Ask the current leader, as an operator, to transfer its leadership."""
    group = run.group
    for node in group.nodes.values():
        if node.member and node.member.core.state.role is Role.LEADER:
            if (
                node.member.core.transfer(run.name(selector % 128), group.now_ms + node.skew_ms)
                in ResponseCode
            ):
                group._step(node)
            return


def _topple(run: Run, selector: int, until_ms: float) -> None:
    """Kill each new leader shortly after it is seen leading, and restart it later, until the fault ends."""
    group = run.group
    leading_ms, down_ms = 40.0 * (1 + selector % 16), 1500.0 * (1 + selector // 16 % 4)

    def fall(name: str) -> None:
        group.kill(name)
        group.after(down_ms, lambda: group.start(name))

    def look() -> None:
        if group.now_ms >= until_ms:
            return
        if (leader := _leading(group)) is None:
            group.after(_LOOK_MS, look)
            return
        group.after(leading_ms, lambda: fall(leader))
        group.after(leading_ms + _LOOK_MS, look)

    look()


def _rejoin(run: Run, selector: int, until_ms: float) -> None:
    """Cut off a leader until another one leads, let it rejoin, and crash it while it takes new entries.

    The third member misses these entries: it is cut off meanwhile. The other leader is killed at the same
    time, so that the members without them elect the next one. The old leader's disk is slow.
    """
    group = run.group
    crash_ms = 100.0 * (1 + selector % 16)

    def cut_off() -> None:
        old = _leading(group)
        if old is None:
            _again(group, until_ms, cut_off)
            return
        links = _links_of(run, old)
        group.cut |= links
        group.nodes[old].disk_slowness = 100.0
        wait_for_another(old, links)

    def wait_for_another(old: str, links: set[tuple[str, str]]) -> None:
        new = _leading(group, than=old)
        if new is None:
            _again(group, until_ms, lambda: wait_for_another(old, links))
            return
        group.after(1_000.0, lambda: rejoin(old, new, links))

    def rejoin(old: str, new: str, links: set[tuple[str, str]]) -> None:
        absent = {name for name in run._names if name not in (old, new)}
        group.cut -= links
        run._cut({link for name in absent for link in ((name, new), (new, name))}, group.now_ms + crash_ms)
        group.after(crash_ms, lambda: crash(old, new))

    def crash(old: str, new: str) -> None:
        group.nodes[old].disk_slowness = 1.0
        group.lose_power(old)
        group.kill(new)
        group.after(100.0, lambda: group.start(old))
        group.after(10_000.0, lambda: group.start(new))

    cut_off()


def _late_vote(run: Run, selector: int, until_ms: float) -> None:
    """Kill a leader, and let the vote for the next candidate arrive when it is a candidate of a later term.

    The old leader and the candidate cannot reach each other, so the voter or the old leader wins that term.
    The candidate learns that late, too.
    """
    group = run.group
    late_ms = 3_600.0 + 150.0 * (selector % 16)

    def kill() -> None:
        if (leader := _leading(group)) is None:
            _again(group, until_ms, kill)
            return
        group.kill(leader)
        watch(leader)

    def watch(old: str) -> None:
        for name in run._names:
            member = group.nodes[name].member
            state = member.core.state if member else None
            if name != old and state and state.role is Role.CANDIDATE and state.voted_for == name:
                delay(old, name, state.term)
                return
        _again(group, until_ms, lambda: watch(old))

    def delay(old: str, candidate: str, term: int) -> None:
        voters = [(name, candidate) for name in run._names if name not in (old, candidate)]
        _slow(group, voters, late_ms, 500.0)
        run._cut({(old, candidate), (candidate, old)}, until_ms)
        group.after(600.0, lambda: group.start(old))
        group.after(600.0, lambda: enter(candidate, term, voters))

    def enter(candidate: str, term: int, voters: list[tuple[str, str]]) -> None:
        member = group.nodes[candidate].member
        if member and member.core.state.term > term:
            _slow(group, voters, 6_000.0, until_ms - group.now_ms)
        else:
            _again(group, until_ms, lambda: enter(candidate, term, voters))

    kill()


def _partial_cut(run: Run, selector: int, until_ms: float) -> None:
    """Cut the link between a follower and its leader, while nothing is sent. Both reach the others."""
    group = run.group
    run._quiet_until_ms = until_ms

    def cut() -> None:
        leader = _leading(group)
        if leader is None:
            _again(group, until_ms, cut)
            return
        followers = [name for name in run._names if name != leader]
        follower = followers[selector % len(followers)]
        run._cut({(leader, follower), (follower, leader)}, until_ms)

    group.after(1_000.0, cut)  # the entries in transit arrive first


def _slow(group: Group, links: list[tuple[str, str]], late_ms: float, for_ms: float) -> None:
    def end() -> None:
        for link in links:
            group.slow.pop(link, None)

    group.slow |= dict.fromkeys(links, late_ms)
    group.after(for_ms, end)


def _again(group: Group, until_ms: float, look: Callable[[], None]) -> None:
    if group.now_ms < until_ms:
        group.after(_LOOK_MS, look)


def _links_of(run: Run, one: str) -> set[tuple[str, str]]:
    """Return the links of a member with all others, in both directions."""
    return {link for other in run._names for link in ((one, other), (other, one))}


def _leading(group: Group, than: str | None = None) -> str | None:
    """Return a member that leads, another one than the given one; None if there is none."""
    for name, node in group.nodes.items():
        if name != than and node.member and node.member.core.state.role is Role.LEADER:
            return name
    return None


def _expire(run: Run, selector: int, until_ms: float) -> None:
    """Delete, repeatedly, a member's entries that all members have."""
    group, name = run.group, run._names[selector % len(run._names)]

    def delete() -> None:
        if group.now_ms < until_ms:
            group.expire(name)
            group.after(_EXPIRY_MS, delete)

    delete()


_TOPPLE: Final = 255
_EXPIRE: Final = 254
_REJOIN: Final = 253
_LATE_VOTE: Final = 252
_PARTIAL_CUT: Final = 251
_OTHERS: Final = {
    _TOPPLE: _topple,
    _EXPIRE: _expire,
    _REJOIN: _rejoin,
    _LATE_VOTE: _late_vote,
    _PARTIAL_CUT: _partial_cut,
}
"""Faults with fixed numbers, which were added later: the numbers of the other faults must not change."""
_FAULTS: Final = (
    _kill,
    _lose_power,
    _crash,
    _crash_all,
    _crash_at_step,
    _disk_fails,
    _restart,
    _isolate,
    _deafen,
    _mute,
    _cut_link,
    _pause,
    _step_clock,
    _slow_disk,
    _transfer,
)


def fault(name: str, selector: int, at: int, length: int) -> bytes:
    """Encode one fault as bytes; `at` and `length` are quarters of a second."""
    numbered = (*enumerate(_FAULTS), *_OTHERS.items())
    number = next(number for number, each in numbered if each.__name__ == f"_{name}")
    return bytes((number, selector, at, length))
