"""Why a group does not receive the messages of a topic, or that it has received all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mqproof.impl.diagnosis import causes
from mqproof.impl.diagnosis.causes import Cause
from mqproof.impl.diagnosis.evidence import Answer, Group, Queue, QueueState
from mqproof.impl.diagnosis.group_rules import STUCK_MS, held_by
from mqproof.impl.diagnosis.history import DEAD_LETTER, RETRY, utc_ms


@dataclass(frozen=True, slots=True)
class Backlog:
    """What brokers report about a topic, its retry topic, and one group."""

    topic: str
    topic_exists: bool
    now_ms: int
    group: Group
    queues: Mapping[Queue, QueueState] = field(default_factory=dict)
    """The queues of the topic, of the group's retry topic, and of its dead-letter topic."""
    newest_ms: Mapping[Queue, int] = field(default_factory=dict)
    """The store time of the last message of each queue; 0 for an empty queue."""
    missing: tuple[str, ...] = ()


def diagnose_group(backlog: Backlog) -> Answer:
    """Return the first cause that applies, with what the queues look like as evidence."""
    if not backlog.topic_exists:
        line = f"no name server has a route of topic {backlog.topic}"
        return _answer(backlog, causes.INCOMPLETE if backlog.missing else causes.TOPIC_MISSING, line)
    cause, lines = _cause(backlog)
    return _answer(backlog, cause, *lines, *_summary(backlog), *backlog.missing)


def _cause(backlog: Backlog) -> tuple[Cause, list[str]]:
    group, behind = backlog.group, _behind(backlog)
    own = {queue: count for queue, count in behind.items() if queue.topic == backlog.topic}
    unreadable = [queue for queue, state in backlog.queues.items() if not state.readable]
    if any(queue.topic == backlog.topic for queue in unreadable):
        return causes.TOPIC_NOT_READABLE, [f"{len(unreadable)} queues have no read permission"]
    if not group.enabled:
        return causes.GROUP_DISABLED, ["consumeEnable of the group is false"]
    if not group.members:
        return causes.NO_MEMBERS, [f"no broker has a connected member of {group.name}"]
    if group.broadcast:
        return causes.BROADCAST, [f"{len(group.members)} members are connected"]
    if group.expressions and backlog.topic not in group.expressions:
        named = ", ".join(sorted(each for each in group.expressions if not each.startswith("%")))
        return causes.NOT_SUBSCRIBED, [f"its members subscribe to {named or 'no topic'}"]
    if differing := _differing(backlog):
        return causes.SUBSCRIPTIONS_DIFFER, differing
    if lines := _unowned(backlog):
        return causes.QUEUE_WITHOUT_OWNER, lines
    if lines := _stuck(backlog, behind):
        return causes.CONSUMER_STUCK, lines
    if own:
        return causes.LAGGING, []
    if behind:
        return causes.WAITING_FOR_RETRY, []
    if backlog.missing:
        return causes.INCOMPLETE, []
    return causes.CAUGHT_UP, []


def _behind(backlog: Backlog) -> dict[Queue, int]:
    """Return the number of messages that the group has not consumed, for each queue that has some."""
    found = {}
    for queue, state in backlog.queues.items():
        if queue.topic not in (backlog.topic, RETRY + backlog.group.name):
            continue
        at, held = backlog.group.offsets.get(queue), held_by(backlog.group, queue)
        if at is None and held is not None and held[1].count:
            at = held[1].first
        # Without an offset, a group may begin at the end of a queue, and has nothing to consume there.
        count = 0 if at is None else state.end - max(at, state.first)
        if count > 0:
            found[queue] = count
    return found


def _differing(backlog: Backlog) -> list[str]:
    views = {
        member.client_id: member.expressions.get(backlog.topic)
        for member in backlog.group.members
        if member.expressions is not None
    }
    if len({(each.kind, each.text) if each else None for each in views.values()}) < 2:
        return []
    return [f"member {name} selects {each if each else 'nothing'}" for name, each in sorted(views.items())]


def _unowned(backlog: Backlog) -> list[str]:
    group = backlog.group
    if any(member.queues is None for member in group.members):
        return []
    unowned = [
        str(queue)
        for queue in backlog.queues
        if queue.topic == backlog.topic and held_by(group, queue) is None
    ]
    return [f"no member reads {', '.join(unowned[:4])}"] if unowned else []


def _stuck(backlog: Backlog, behind: Mapping[Queue, int]) -> list[str]:
    lines = []
    for queue in behind:
        if (found := held_by(backlog.group, queue)) is None:
            continue
        member, held = found
        last_ms = max(held.consumed_ms, backlog.newest_ms.get(queue, 0))
        if held.count and last_ms and backlog.now_ms - last_ms > STUCK_MS:
            since = utc_ms(held.consumed_ms) if held.consumed_ms else "its start"
            lines.append(f"member {member} has consumed nothing of {queue} since {since}")
    return lines[:4]


def _summary(backlog: Backlog) -> list[str]:
    behind = _behind(backlog)
    ends = sum(state.end - state.first for queue, state in backlog.queues.items() if _is_of(queue, backlog))
    own = sum(count for queue, count in behind.items() if queue.topic == backlog.topic)
    letters = sum(
        state.end - state.first
        for queue, state in backlog.queues.items()
        if queue.topic == DEAD_LETTER + backlog.group.name
    )
    lines = [f"{backlog.topic} has {ends} messages; {own} of them are not consumed"]
    lines += [f"  {queue}: {count} not consumed" for queue, count in sorted(behind.items())[:8]]
    if retries := sum(behind.values()) - own:
        lines.append(f"{retries} redeliveries are not consumed")
    if letters:
        lines.append(f"{letters} messages of the group are dead letters")
    return lines


def _is_of(queue: Queue, backlog: Backlog) -> bool:
    return queue.topic == backlog.topic


def _answer(backlog: Backlog, cause: Cause, *lines: str) -> Answer:
    return Answer(cause, lines, backlog.group.name, backlog.topic)
