"""What became of a stored message for one consumer group."""

from collections.abc import Callable
from typing import Final

from mqproof.impl.diagnosis import causes
from mqproof.impl.diagnosis.causes import Cause
from mqproof.impl.diagnosis.evidence import Answer, Copy, Evidence, Expression, Group, Held, Queue
from mqproof.impl.diagnosis.history import DEAD_LETTER, line_of, queue_of, utc_ms
from mqproof.impl.diagnosis.message_rules import (
    answer,
    confirmations,
    describe,
    due_ms,
    fate,
    is_expired,
    main_copies,
    queue_at,
    retry_topic,
    waiting,
    without_topic,
)
from mqproof.impl.remoting.message import TAGS
from mqproof.spec.events import Event, Kind

STUCK_MS: Final = 60_000
"""How long a member may hold messages without consuming any before it counts as stuck."""


def diagnose(evidence: Evidence, group: str | None = None) -> tuple[Answer, ...]:
    """Return the answer for one group, or for each group that is known, or for all groups alike."""
    if (common := fate(evidence)) is not None:
        return (common,)
    names = [group] if group else sorted({*evidence.groups, *evidence.history.groups, *_called(evidence)})
    if not names:
        return (_without_group(evidence),)
    return tuple(_of_group(evidence, name) for name in names)


def _called(evidence: Evidence) -> set[str]:
    return {call.group for call in evidence.calls if call.group}


def _of_group(evidence: Evidence, name: str) -> Answer:
    for rule in _RULES:
        if found := rule(evidence, name):
            return Answer(found.cause, found.evidence, name, evidence.topic, evidence.message_id)
    return Answer(
        *_undecided(evidence, "no source shows what the group did with it"),
        name,
        evidence.topic,
        evidence.message_id,
    )


def _without_group(evidence: Evidence) -> Answer:
    if places := _stored_lines(evidence):
        return answer(causes.NO_GROUP, evidence, *places)
    cause, lines = _undecided(evidence, "no source shows whether it is stored")
    return answer(cause, evidence, *lines)


def _undecided(evidence: Evidence, why: str) -> tuple[Cause, tuple[str, ...]]:
    """Return that evidence is missing, and what there is."""
    lacking = (*evidence.missing, *(f"broker {each} does not answer" for each in evidence.silent_brokers))
    if stored := _stored_lines(evidence):
        return causes.INCOMPLETE, (*stored, *(lacking or (why,)))
    known = tuple(map(line_of, evidence.history.own[-3:]))
    return (causes.INCOMPLETE if lacking else causes.NOT_FOUND), (*known, *lacking, why)


def _stored_lines(evidence: Evidence) -> list[str]:
    """Return what shows that the message was stored."""
    events = [*confirmations(evidence.history), *evidence.history.of(Kind.APPEND)]
    return [*_where(evidence), *map(line_of, events[:1])]


def _where(evidence: Evidence) -> list[str]:
    return [describe(copy) for copy in main_copies(evidence)[:2]]


# --- what the group did with it


def _ended(evidence: Evidence, name: str) -> Answer | None:
    """Return that the message was consumed or is a dead letter, by what came last."""
    ok = evidence.history.of(Kind.CONSUME_OK, group=name)
    dead = evidence.history.of(Kind.DEAD_LETTER, group=name)
    letters = evidence.copies_in(DEAD_LETTER + name)
    ok_call = next((c for c in evidence.calls if c.group == name and c.ok), None)
    if ok and not (dead and dead[-1].ts > ok[-1].ts):
        return answer(causes.CONSUMED, evidence, line_of(ok[-1]))
    if letters or dead:
        lines = [*map(describe, letters[-1:]), *map(line_of, dead[-1:])]
        failed = len(evidence.history.of(Kind.CONSUME_FAIL, group=name))
        times = [f"log: the listener failed {failed} times"] if failed else []
        times += [f"store: redelivered {letters[-1].reconsume_times} times"] if letters else []
        return answer(causes.DEAD_LETTERED, evidence, *lines, *times)
    if ok_call is not None:
        line = f"trace: the listener of group {name} returned success at {utc_ms(ok_call.time_ms)}"
        return answer(causes.CONSUMED, evidence, line)
    return None


def _retried(evidence: Evidence, name: str) -> Answer | None:
    topic = retry_topic(name)
    if held := waiting(evidence, topic):
        copies = evidence.copies_in(topic)
        if not any(copy.reconsume_times >= held.reconsume_times for copy in copies):
            time_ms = due_ms(held)
            due = f"the next delivery is due at {utc_ms(time_ms)}" if time_ms else "its time is not stated"
            return answer(causes.WAITING_FOR_RETRY, evidence, f"{describe(held)}, to {topic}", due)
    copies = evidence.copies_in(topic)
    if not copies:
        return None
    last = copies[-1]
    committed = _committed(evidence, name, last.queue)
    if committed is None:
        return None
    times = f"store: delivery {last.reconsume_times + 1} is {last.place}; the group's offset is {committed}"
    if committed > last.offset:
        end = "it is not a dead letter, and no further retry waits"
        return answer(causes.CONSUMED, evidence, times, end)
    return _waits(evidence, name, last, times) or answer(causes.WAITING_FOR_RETRY, evidence, times)


def _committed(evidence: Evidence, name: str, queue: Queue) -> int | None:
    group = evidence.groups.get(name)
    if group is not None and queue in group.offsets:
        return group.offsets[queue]
    return evidence.history.committed.get((name, queue.topic, queue.broker, queue.id))


# --- filters


def _filtered(evidence: Evidence, name: str) -> Answer | None:
    if evidence.topic is None or _is_delivered(evidence, name):
        return None
    properties = _properties(evidence)
    group = evidence.groups.get(name)
    expression = _expression(evidence, name)
    if properties is None or expression is None or expression.selects(properties) is not False:
        return _differing(evidence, group, properties)
    if different := _differing(evidence, group, properties):
        return different
    tag = properties.get(TAGS)
    named = "the message has no tag" if tag is None else f"the tag of the message is {tag!r}"
    since = f" since {utc_ms(expression.since_ms)}" if expression.since_ms else ""
    line = f"the group selects {expression} of topic {evidence.topic}{since}"
    return answer(causes.FILTERED, evidence, *_where(evidence)[:1], named, line)


def _differing(evidence: Evidence, group: Group | None, properties: dict[str, str] | None) -> Answer | None:
    """Return that members disagree about the message: one selects it, and another drops it."""
    if group is None or evidence.topic is None or properties is None:
        return None
    views = {
        member.client_id: member.expressions.get(evidence.topic)
        for member in group.members
        if member.expressions is not None
    }
    if len({(each.kind, each.text) if each else None for each in views.values()}) < 2:
        return None
    selected = {name: each.selects(properties) if each else False for name, each in views.items()}
    if not (any(selected.values()) and False in selected.values()) or _is_waiting(evidence, group):
        return None
    lines = [f"member {name} selects {each if each else 'nothing'}" for name, each in sorted(views.items())]
    return answer(causes.SUBSCRIPTIONS_DIFFER, evidence, *lines)


def _is_waiting(evidence: Evidence, group: Group) -> bool:
    return any(group.offsets.get(copy.queue, 0) <= copy.offset for copy in main_copies(evidence)[-1:])


def _properties(evidence: Evidence) -> dict[str, str] | None:
    """Return the properties of the message; from a log, only its tag. None if not even that is known."""
    if copies := main_copies(evidence):
        return dict(copies[0].properties)
    for event in evidence.history.own:
        if event.tags is not None:
            return {TAGS: event.tags} if event.tags else {}
    return None


def _expression(evidence: Evidence, name: str) -> Expression | None:
    """Return the group's subscription to the topic: the one of the logs at the time, else the one of now."""
    stored = _stored_us(evidence)
    for event in reversed(evidence.history.others(Kind.SUBSCRIBE)):
        is_own = event.group == name and event.topic == evidence.topic and "expression" in event.attrs
        if is_own and (stored is None or event.ts <= stored):
            return Expression(event.attrs["expression"], event.attrs.get("type", "TAG"), event.ts // 1000)
    group = evidence.groups.get(name)
    if group is None or evidence.topic is None:
        return None
    return group.expressions.get(evidence.topic)


def _stored_us(evidence: Evidence) -> int | None:
    if copies := main_copies(evidence):
        return copies[0].stored_ms * 1000 + 999
    if events := [*evidence.history.of(Kind.APPEND), *confirmations(evidence.history)]:
        return events[0].ts
    return None


def _is_delivered(evidence: Evidence, name: str) -> bool:
    return bool(evidence.history.of(Kind.DELIVER, group=name)) or name in _called(evidence)


# --- the group's offset and the message


def _without_topic(evidence: Evidence, name: str) -> Answer | None:  # noqa: ARG001  # a rule's signature
    return without_topic(evidence)


def _behind(evidence: Evidence, name: str) -> Answer | None:
    """Return why the group has not come to the message, if its offset is not beyond it."""
    group = evidence.groups.get(name)
    copies = main_copies(evidence)
    if group is None or not copies:
        return None
    if group.broadcast and group.members:
        return None
    behind = [copy for copy in copies if (group.offsets.get(copy.queue) or 0) <= copy.offset]
    if len(behind) < len(copies):
        return None  # the group is beyond one of the copies
    copy = behind[0]
    committed = group.offsets.get(copy.queue)
    at = "the group has no offset there" if committed is None else f"the group's offset there is {committed}"
    return _waits(evidence, name, copy, f"{describe(copy)}; {at}")


def _waits(evidence: Evidence, name: str, copy: Copy, where: str) -> Answer | None:
    """Return why a record that the group has not passed is not consumed."""
    group = evidence.groups.get(name)
    if group is None:
        return None
    state = evidence.queues.get(copy.queue)
    if state is not None and not state.readable:
        return answer(
            causes.TOPIC_NOT_READABLE, evidence, where, f"{copy.queue.topic} has no read permission"
        )
    if not group.enabled:
        return answer(causes.GROUP_DISABLED, evidence, where, "consumeEnable of the group is false")
    if not group.members:
        return answer(causes.NO_MEMBERS, evidence, where, f"no broker has a connected member of {name}")
    members = f"{len(group.members)} members are connected: " + ", ".join(
        sorted(member.client_id for member in group.members)[:4]
    )
    if group.expressions and copy.queue.topic not in group.expressions:
        subscribed = ", ".join(sorted(topic for topic in group.expressions if not topic.startswith("%")))
        line = f"they subscribe to {subscribed or 'no topic'}"
        return answer(causes.NOT_SUBSCRIBED, evidence, where, members, line)
    held = held_by(group, copy.queue)
    if held is None and all(member.queues is not None for member in group.members):
        return answer(causes.QUEUE_WITHOUT_OWNER, evidence, where, members, f"none reads {copy.queue}")
    return _pace(evidence, group, copy, held, where)


def _pace(evidence: Evidence, group: Group, copy: Copy, held: tuple[str, Held] | None, where: str) -> Answer:
    ahead = copy.offset - (group.offsets.get(copy.queue) or 0)
    lag = f"{ahead} messages are before it in its queue"
    if held is None:
        return answer(causes.LAGGING, evidence, where, lag)
    member, queue = held
    reads = f"member {member} reads the queue and holds {queue.count} messages of it"
    quiet_ms = evidence.now_ms - max(queue.consumed_ms, copy.stored_ms)
    if queue.count and quiet_ms > STUCK_MS:
        since = utc_ms(queue.consumed_ms) if queue.consumed_ms else "its start"
        return answer(causes.CONSUMER_STUCK, evidence, where, reads, f"it has consumed nothing since {since}")
    if not queue.count and queue.pulled_ms and evidence.now_ms - queue.pulled_ms > 2 * STUCK_MS:
        pulled = f"its last pull was at {utc_ms(queue.pulled_ms)}"
        return answer(causes.CONSUMER_STUCK, evidence, where, reads, pulled)
    if queue.count and queue.first <= copy.offset <= queue.last:
        return answer(causes.IN_CONSUMPTION, evidence, where, reads)
    return answer(causes.LAGGING, evidence, where, reads, lag)


def held_by(group: Group, queue: Queue) -> tuple[str, Held] | None:
    """Return the member that reads a queue, and what it holds of it."""
    for member in group.members:
        if member.queues is not None and queue in member.queues:
            return member.client_id, member.queues[queue]
    return None


def _delivered(evidence: Evidence, name: str) -> Answer | None:
    """Return what follows if the logs or traces say that a member received the message."""
    delivered = evidence.history.of(Kind.DELIVER, group=name)
    if not delivered:
        return None
    last = delivered[-1]
    failed = [
        event
        for event in evidence.history.of(Kind.CONSUME_FAIL, Kind.RETRY, group=name)
        if event.ts >= last.ts
    ]
    if failed:
        return answer(causes.WAITING_FOR_RETRY, evidence, line_of(failed[-1]))
    queue = queue_at(last)
    committed = _committed(evidence, name, queue) if queue else None
    if committed is not None and last.queue_offset is not None and committed > last.queue_offset:
        line = f"the group's offset in {queue} is {committed}"
        return answer(causes.CONSUMED, evidence, line_of(last), line)
    return answer(causes.IN_CONSUMPTION, evidence, line_of(last), "no event says how the listener ended")


def _skipped(evidence: Evidence, name: str) -> Answer | None:
    """Return how the group's offset moved over a message that it did not receive."""
    if _is_delivered(evidence, name):
        return None
    for queue, offset in _places(evidence):
        reset = _reset_over(evidence, name, queue, offset)
        committed = _committed(evidence, name, queue)
        if reset is None and (committed is None or committed <= offset):
            continue
        where = _where(evidence)[:1]
        if began := _began_after(evidence, name, queue, offset):
            return answer(causes.SKIPPED_BEFORE_GROUP, evidence, *where, line_of(began))
        if reset is not None:
            cause, lines = reset
            return answer(cause, evidence, *where, *lines)
        if evidence.history.is_complete(name, queue.topic, queue.broker):
            bounds = evidence.history.received.get((name, queue.topic, queue.broker, queue.id))
            seen = f"log: {name} received nothing of {queue}"
            if bounds:
                seen = f"log: {name} received offsets {bounds[0]} to {bounds[1]} of {queue}, without {offset}"
            past = f"the group's offset there is {committed}"
            return answer(causes.SKIPPED_BY_COMMIT, evidence, *where, seen, past)
    return None


def _began_after(evidence: Evidence, name: str, queue: Queue, offset: int) -> Event | None:
    """Return the first subscription of the group, if the message was stored before it."""
    stored = _stored_us(evidence)
    bounds = evidence.history.received.get((name, queue.topic, queue.broker, queue.id))
    if queue.broker not in evidence.history.whole or stored is None or (bounds and bounds[0] < offset):
        return None
    for event in evidence.history.others(Kind.SUBSCRIBE):
        if (event.group, event.topic) == (name, evidence.topic):
            return event if event.ts > stored else None
    return None


def _places(evidence: Evidence) -> list[tuple[Queue, int]]:
    places = [(copy.queue, copy.offset) for copy in main_copies(evidence)]
    if places:
        return places
    found = []
    for event in (*confirmations(evidence.history), *evidence.history.of(Kind.APPEND)):
        queue = queue_at(event)
        if queue and event.queue_offset is not None and queue.topic == evidence.topic:
            found.append((queue, event.queue_offset))
    return list(dict.fromkeys(found))


def _reset_over(evidence: Evidence, name: str, queue: Queue, offset: int) -> tuple[Cause, list[str]] | None:
    """Return who set the group's offset beyond the message: an administrator, or the group's own client."""
    key = (name, queue.topic, queue.broker, queue.id)
    stored = _stored_us(evidence) or 0
    jumps = [
        event
        for event in evidence.history.others(Kind.OFFSET_COMMIT)
        if queue_of(event) == key and event.ts >= stored and (event.queue_offset or 0) > offset
    ]
    if not jumps:
        return None
    asked = [
        event
        for event in evidence.history.others(Kind.ADMIN)
        if event.group == name and event.topic in (None, queue.topic) and event.ts >= stored
    ]
    by_client = jumps[0].client is not None and not asked
    cause = causes.SKIPPED_BY_COMMIT if by_client else causes.SKIPPED_BY_RESET
    return cause, [line_of(event) for event in (jumps[0], *asked[:1])]


def _expired(evidence: Evidence, name: str) -> Answer | None:
    """Return that the broker deleted the message as too old before the group came to it."""
    if main_copies(evidence) or not is_expired(evidence) or _is_delivered(evidence, name):
        return None
    for event in confirmations(evidence.history):
        queue = queue_at(event)
        group = evidence.groups.get(name)
        if queue is None or group is None or event.queue_offset is None or queue not in group.offsets:
            continue
        committed, state = group.offsets[queue], evidence.queues.get(queue)
        if committed <= event.queue_offset and state is not None:
            line = f"store: {queue} begins at {state.first}; the group's offset is {committed}"
            return answer(causes.DELETED_BEFORE_CONSUMPTION, evidence, line_of(event), line)
    return None


def _unrecorded(evidence: Evidence, name: str) -> Answer | None:
    group = evidence.groups.get(name)
    if group is not None and group.broadcast and group.members:
        return answer(causes.BROADCAST, evidence, *_where(evidence)[:1], f"{len(group.members)} members")
    for queue, offset in _places(evidence):
        committed = _committed(evidence, name, queue)
        if committed is not None and committed > offset and not evidence.missing:
            line = f"the group's offset in {queue} is {committed}"
            begun = [call for call in evidence.calls if call.group == name]
            lines = [f"trace: a listener was called at {utc_ms(begun[-1].time_ms)}"] if begun else []
            return answer(causes.PASSED, evidence, *_where(evidence)[:1], *lines, line)
    return None


_RULES: Final[tuple[Callable[[Evidence, str], Answer | None], ...]] = (
    *(_ended, _retried, _without_topic, _filtered, _behind, _delivered, _skipped, _expired, _unrecorded),
)
