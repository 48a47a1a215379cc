"""Rules about the owners of a group's queues, and about concurrent consumption."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mqproof.conformance.engine.finding import Finding, Tally, not_judged
from mqproof.conformance.history.record import NEVER, Read, Record, Sent
from mqproof.conformance.history.rules.loss import gone

_MS = 1_000_000


@dataclass(slots=True)
class _Ownership:
    """The state of one group: the owners of its queues, and since when that is wrong."""

    owned: dict[str, frozenset[str]] = field(default_factory=dict)
    """Maps a member to its queues."""
    owners: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    double_since: dict[str, int] = field(default_factory=dict)
    orphan_since: dict[str, int] = field(default_factory=dict)


def double_owned(history: Record) -> Finding:
    """C09: a queue of a clustering group has exactly one owner, if the group has members.

    Deviations of up to `rebalance_within_ms` after a change are allowed.
    """
    within = history.setup.rebalance_within_ms
    if within is None:
        return not_judged({"assignments": len(history.assigns)})
    tally = Tally()
    groups: dict[str, _Ownership] = defaultdict(_Ownership)
    for step in history.assigns:
        name = step.value.group
        if not history.group(name).broadcast:
            tally.looked += 1
            client = step.value.client or str(step.span.process)
            queues = frozenset() if step.value.left else frozenset(step.value.queues)
            _assign(groups[name], client, queues, step.value.left, step.span.began, name, within, tally)
    for name, group in groups.items():
        for queue, since in group.double_since.items():
            _judge(tally, name, queue, "two owners", history.last_time - since, within)
        for queue, since in group.orphan_since.items():
            _judge(tally, name, queue, "no owner", history.last_time - since, within)
    return tally.finding("assignments")


def _assign(
    group: _Ownership, client: str, queues: frozenset[str], left: bool, time: int, name: str, within: int,
    tally: Tally,
) -> None:  # fmt: skip
    had = group.owned.pop(client, frozenset())
    if not left:
        group.owned[client] = queues
    for queue in had - queues:
        group.owners[queue].discard(client)
    for queue in queues:
        group.owners[queue].add(client)
    changed = had | queues if group.owned else set(group.owners)
    for queue in changed:
        owners = len(group.owners[queue])
        for since, is_so, what in (
            (group.double_since, owners > 1, "two owners"),
            (group.orphan_since, owners == 0 and bool(group.owned), "no owner"),
        ):
            if is_so:
                since.setdefault(queue, time)
            elif queue in since:
                _judge(tally, name, queue, what, time - since.pop(queue), within)


def _judge(tally: Tally, group: str, queue: str, what: str, length: int, within: int) -> None:
    if length > within * _MS:
        text = f"{queue} had {what} in {group} for {length // _MS} ms"
        tally.found(text, queue=queue, group=group)


def overlapping(history: Record) -> Finding:
    """C10 (orderly-lock breach): a queue of an orderly group is consumed one batch at a time.

    A consumer may lose its lock if its listener runs longer than the lock lasts, or if a broker's life ends.
    For `lock_trusted_ms` after the grant, it may then continue while another consumer has locked the queue at
    the restarted broker.
    """
    tally = Tally()
    working: dict[tuple[str, str], Read] = {}
    for read in history.orderly_calls:
        if read.group in history.broadcasts:
            continue
        tally.looked += 1
        at = (read.group, read.queue)
        before = working.get(at)
        if before is None or before.span.end < read.span.start:
            working[at] = read
            continue
        expired = read.span.began - before.span.began > history.setup.lock_expires_ms * _MS
        # A call that never ended may be of a crashed process: its lock was lost, or the queue was reassigned.
        other = before.client != read.client
        died = before.span.end == NEVER and other
        granted = before.span.began - history.setup.lock_trusted_ms * _MS
        ended = history.ends.last_time(read.span.start)
        forgotten = other and ended is not None and ended >= granted
        if expired or died or forgotten:
            tally.explained += 1
        else:
            text = f"{read.client} began with {read.queue} at index {read.span.start}, while {before.client}"
            tally.found(f"{text} was consuming it", queue=read.queue, group=read.group)
        if read.span.end > before.span.end or before.span.end == NEVER:
            working[at] = read
    return tally.finding("calls")


def head_block(history: Record) -> Finding:
    """C10 (head-block): an orderly queue with messages and an owner progresses within `stall_within_ms`."""
    if history.setup.stall_within_ms is None:
        return not_judged()
    tally, lost = Tally(looked=len(_heads(history))), gone(history)
    for group, waiting in stalled(history):
        left = [sent for sent in waiting if id(sent) not in lost]
        if left:
            head = _heads(history)[group, left[0].queue]
            late = history.last_time - max(head.since, min(sent.span.ended for sent in left))
            text = f"{left[0].queue} of {group} makes no progress at {head.furthest} for {late // _MS} ms"
            tally.found(text, queue=left[0].queue, group=group, offset=head.furthest)
    return tally.finding("queues")


def stalled(history: Record) -> Iterator[tuple[str, list[Sent]]]:
    """Yield, for each queue of an orderly group with an owner, the messages that have waited too long.

    Lost messages are among them.
    """
    live: dict[tuple[str, str], bool] = {}
    for step in history.assigns:
        live[step.value.group, step.value.client or str(step.span.process)] = not step.value.left
    within = history.setup.stall_within_ms
    for (group, queue), head in _heads(history).items() if within is not None else ():
        if live.get((group, head.client)):
            due = history.last_time - (within or 0) * _MS
            acked = history.acked.get(queue, {}).values() if head.since < due else ()
            yield group, [s for s in acked if s.offset > head.furthest and s.span.ended < due]


class _Head(NamedTuple):
    """How far an orderly group is in a queue."""

    client: str
    """The member of the last call."""
    since: int
    """When the last call ended, or began if it has no end."""
    furthest: int
    """The furthest offset, not the last one: after a rebalance a member may repeat earlier messages."""


def _heads(history: Record) -> dict[tuple[str, str], _Head]:
    return history.once(_find_heads)


def _find_heads(history: Record) -> dict[tuple[str, str], _Head]:
    heads: dict[tuple[str, str], _Head] = {}
    for read in history.orderly_calls:
        at = (read.group, read.queue)
        last = read.messages[-1].offset if read.messages else -1
        since = read.span.began if read.span.end == NEVER else read.span.ended
        heads[at] = _Head(read.client, since, max(heads[at].furthest if at in heads else -1, last))
    return heads
