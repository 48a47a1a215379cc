"""Rules about the order of a queue: of sends and reads, with gaps, repetitions and filters."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.history.lines import Delivered
from mqproof.conformance.history.record import FAILED, NEVER, OK, Events, Read, Reason, Record, Sent, is_own


@dataclass(slots=True)
class _Polled:
    """Findings from the polls of all consumers; several rules use parts of them."""

    delivered: int = 0
    back: Tally = field(default_factory=Tally)
    skip: Tally = field(default_factory=Tally)
    hole: Tally = field(default_factory=Tally)
    filtered: Tally = field(default_factory=Tally)


def nonmonotonic_poll(history: Record) -> Finding:
    """A10: a consumer's polls do not go back, between polls or within one, unless something moved it back.

    That is an assignment, a reset, a seek or a restart.
    """
    return history.once(_polled).back.finding("polled")


def poll_skip(history: Record) -> Finding:
    """A09: a consumer's polls do not skip offsets that hold a message, without a cause as for A10."""
    return history.once(_polled).skip.finding("polled")


def queue_hole(history: Record) -> Finding:
    """C04 (cq-hole): no poll of an unfiltered group passes an offset without a known message."""
    return history.once(_polled).hole.finding("polled")


def filtered(history: Record) -> Finding:
    """C14: a group that subscribes by tags receives all messages with these tags, and no others.

    An SQL92 expression is judged where the setup names the tags that it selects.
    """
    return history.once(_polled).filtered.finding("delivered")


def _polled(history: Record) -> _Polled:
    found = _Polled()
    causes = causes_of(history)
    last: dict[tuple[str, str, str], tuple[int, int]] = {}
    for read in history.reads:
        tags = history.tags.get(read.group, ())
        if tags:
            for message in read.messages:
                found.filtered.looked += 1
                if message.tag not in tags:
                    text = f"{read.group} subscribes to {' || '.join(tags)} but received {message.id}"
                    found.filtered.found(f"{text} with tag {message.tag!r}", id=message.id, queue=read.queue)
        if read.kind != "poll":
            continue
        at = (read.group, read.client, read.queue)
        before, index = last.get(at, _NEVER_POLLED)
        inside = True
        # A poll that continues where the last one ended needs no cause.
        continues = index >= 0 and before == read.offset - 1 >= 0
        if not continues and (index < 0 or read.seek or causes.between(read.group, index, read.span.start)):
            before = read.offset - 1 if read.offset >= 0 else -1
            inside = read.offset >= 0
        found.delivered += len(read.messages)
        for message in read.messages:
            offset = message.offset
            if offset <= before and inside:
                text = f"{read.client} received offset {offset} of {read.queue} after {before}"
                found.back.found(text, queue=read.queue, offset=offset, index=read.at)
            elif offset > before + 1 and inside:
                _jumped(history, found, read, before + 1, offset, tags)
            before, inside = max(offset, before), True
        if read.next - 1 > before and inside:  # the poll states that it passed further offsets
            _jumped(history, found, read, before + 1, read.next, tags)
        moved = read.next < read.offset and not read.messages  # the broker redirects the consumer
        last[at] = (read.next - 1 if moved else max(before, read.next - 1)), read.at
    found.back.looked = found.skip.looked = found.hole.looked = found.delivered
    return found


_NEVER_POLLED: Final = (-1, -1)


def _jumped(history: Record, found: _Polled, read: Read, low: int, high: int, tags: tuple[str, ...]) -> None:
    """Record the findings of a poll that went from `low` to `high` without the messages between."""
    known = history.known.get(read.queue, [])
    begin, stop = bisect_left(known, low), bisect_left(known, high)
    # Acknowledged messages that no client received are lost, not skipped.
    readable, first = history.places.get(read.queue, {}), first_readable(history, read.queue)
    here = {message.offset for message in read.messages}  # delivered in the wrong order: that is A10
    passed = [o for o in known[begin:stop] if o in readable and o not in here and o >= first]
    if tags:
        acked = history.acked.get(read.queue, {})
        for offset in passed:
            # A place freed by a crash may hold another message.
            sent = acked.get(offset)
            if sent and sent.message.tag in tags and not history.excuse(sent, read.at):
                text = f"{read.client} did not receive {sent.message.id}, to which it subscribes"
                found.filtered.found(text, queue=read.queue, offset=offset)
        return
    if passed:
        text = f"{read.client} moved from {low} to {high} of {read.queue}, past {passed[0]}"
        found.skip.found(text, queue=read.queue, offset=passed[0], index=read.at)
    if stop - begin < high - low and is_own(read.queue):
        missing = next((o for o, k in enumerate(known[begin:stop], low) if o != k), low + stop - begin)
        if missing < first:
            return
        text = f"{read.client} moved from {low} to {high} of {read.queue}; no client ever received {missing}"
        found.hole.found(text, queue=read.queue, offset=missing, index=read.at)


def first_readable(history: Record, queue: str) -> int:
    return history.once(_expired).get(queue, 0)


def _expired(history: Record) -> dict[str, int]:
    """Return the number of deleted offsets at the front of each queue, as known from bounds requests."""
    first: dict[str, int] = {}
    for step in history.bounds:
        first[step.value.queue] = max(first.get(step.value.queue, 0), step.value.min)
    return first


@dataclass(slots=True)
class _Causes:
    """Events that move consumers back or ahead: by group, and for all groups."""

    of_group: dict[str, Events] = field(default_factory=dict)
    of_all: Events = field(default_factory=Events)

    def between(self, group: str, after: int, before: int) -> bool:
        mine = self.of_group.get(group)
        return self.of_all.between(after, before) or bool(mine and mine.between(after, before))


def causes_of(history: Record) -> _Causes:
    """Return the events that move the consumers of each group."""
    return history.once(_find_causes)


def _find_causes(history: Record) -> _Causes:
    """Return rebalances, resets and seeks by group, and starts and ends of brokers for all groups."""
    causes = _Causes(of_all=history.ends)
    at: dict[str, list[int]] = defaultdict(list)
    for step in history.assigns:
        at[step.value.group] += [step.span.start, min(step.span.end, NEVER - 1)]
    for group, index in history.moves:
        at[group].append(index)
    causes.of_group = {group: Events(sorted(indexes)) for group, indexes in at.items()}
    return causes


def duplicate_delivery(history: Record) -> Finding:
    """A07: a place is delivered to a group again only for a cause; to each member, in a broadcast group.

    Causes are a failed or unknown consumption, a rebalance, a reset, a seek, the end of a broker's life, or a
    second owner.
    """
    tally = Tally()
    causes = causes_of(history)
    delivered: dict[tuple[str, str], dict[int, Read]] = defaultdict(dict)
    broadcasts = history.broadcasts
    for read in history.received:
        if read.kind == "pop":
            continue  # invisibility() judges pops
        receiver = f"{read.group} {read.client}" if read.group in broadcasts else read.group
        places = delivered[receiver, read.queue]
        tally.looked += len(read.messages)
        for message in read.messages:
            before = places.get(message.offset)
            places[message.offset] = read
            if before is None:
                continue
            failed = before.kind == "consume" and before.span.outcome is not OK
            moved = failed or read.seek or causes.between(read.group, before.span.start, read.at)
            # With two concurrent owners, which C09 judges, each receives the queue's messages.
            if moved or (read.client != before.client and _owned(history, read, before.at)):
                tally.explained += 1
            else:
                text = f"{receiver} received {message.id} at {message.offset} of {read.queue} twice"
                tally.found(text, id=message.id, queue=read.queue, offset=message.offset)
    return tally.finding("delivered")


def _owned(history: Record, read: Read, index: int) -> bool:
    """Return whether the queue was already assigned to the reader at that index."""
    steps = history.once(assignments).get((read.group, read.client), [])
    place = bisect_left(steps, index, key=lambda step: step[0])
    return place > 0 and read.queue in steps[place - 1][1]


def assignments(history: Record) -> dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]]:
    """Return, by group and member, the assigned queues and the index of each assignment."""
    members: dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
    for step in history.assigns:
        at = step.value.group, step.value.client or str(step.span.process)
        members[at].append((step.span.start, step.value.queues))
    return members


def nonmonotonic_send(history: Record) -> Finding:
    """A11: consecutive sends of one producer to a queue are stored in that order."""
    tally = Tally()
    last: dict[tuple[int | str, str], Sent] = {}
    for sent in history.placed:
        if sent.place:
            continue
        at = (sent.span.process, sent.queue)
        before = last.get(at)
        tally.looked += 1
        if before is not None and sent.offset < before.offset:
            if history.excuse(before, sent.span.end):
                tally.explained += 1
            else:
                text = f"{sent.span.process} sent {sent.message.id} after the message at {before.offset} of"
                text = f"{text} {sent.queue}, but it is at {sent.offset}"
                tally.found(text, id=sent.message.id, queue=sent.queue, offset=sent.offset)
        last[at] = sent
    return tally.finding("acknowledged")


def torn_batch(history: Record) -> Finding:
    """A12: the messages of a batch are stored consecutively, whether or not its send was answered.

    A crash of the machine may split a batch that was not on disk.
    """
    tally = Tally()
    batches: dict[int, list[Sent]] = defaultdict(list)
    for sent in history.sends:
        if sent.batch > 1 and sent.span.outcome is not FAILED:
            batches[sent.span.start].append(sent)
    members = {sent.message.id: sent for batch in batches.values() for sent in batch}
    for read, message in history.sights if members else ():
        member = members.get(message.id)
        if member is None or not is_own(read.queue):
            continue
        tally.looked += 1
        wrong, at = _torn(member, read.queue, message.offset, batches[member.span.start], history)
        if wrong and (reason := _may_be_cut(history, member, max(at, read.at))):
            tally.explain(reason, id=message.id, queue=read.queue, offset=message.offset)
        elif wrong:
            text = f"{message.id}, number {member.place + 1} of a batch, is at {message.offset} of"
            text = f"{text} {read.queue}, {wrong}"
            tally.found(text, id=message.id, queue=read.queue, offset=message.offset)
    return tally.finding("batched")


def _torn(member: Sent, queue: str, offset: int, batch: list[Sent], history: Record) -> tuple[str, int]:
    """Return what is wrong with the place at which a message was seen, and the index since which it is known.

    The text is empty if nothing is wrong.
    """
    # With several attempts, the one that was stored is unknown.
    if member.offset >= 0 and member.attempts == 1 and (queue, offset) != (member.queue, member.offset):
        return f"not at {member.offset} of {member.queue}", -1
    for place in (member.place - 1, member.place + 1):
        if 0 <= place < len(batch):
            sight = history.places[queue].get(offset + place - member.place)
            if sight and (there := sight[1].id) and there != batch[place].message.id:
                return f"next to {there} instead of {batch[place].message.id}", sight[0].at
    return "", -1


def _may_be_cut(history: Record, member: Sent, before: int) -> Reason | None:
    if member.span.outcome is OK:
        return history.excuse(member, before)
    for events in (history.crashes, history.losses):
        if (index := events.first(member.span.start, before)) is not None:
            return "fault", index
    return None


def key_order(history: Record) -> Finding:
    """A13: an orderly group starts to consume messages of a sharding key in queue order.

    A member whose call failed continues with the same messages, unless they became dead letters.
    """
    tally = Tally()
    last: dict[tuple[str, str, str], tuple[int, str]] = {}
    begun: dict[tuple[str, str], set[int]] = defaultdict(set)
    failed: dict[tuple[str, str], Read] = {}
    for read, first in _orderly(history, begun):
        before = failed.pop((read.group, read.queue), None)
        if before is not None and _passes_over(history, before, read):
            there = before.messages[0]
            text = (
                f"{read.client} failed with {there.id} at {there.offset} of {read.queue}, and continued with"
            )
            tally.found(f"{text} {read.messages[0].offset}", id=there.id, queue=read.queue)
        if read.span.outcome is FAILED and read.messages:
            failed[read.group, read.queue] = read
        for message in first:
            if not message.key:
                continue
            tally.looked += 1
            at = (read.group, read.queue, message.key)
            offset, id_ = last.get(at, (-1, ""))
            if message.offset < offset:
                text = f"{read.client} began with {message.id} at {message.offset} of {read.queue} after"
                tally.found(f"{text} {id_} at {offset}, of the same key", id=message.id, queue=read.queue)
            last[at] = message.offset, message.id
    return tally.finding("delivered")


def _passes_over(history: Record, failed: Read, then: Read) -> bool:
    """Return whether a member's call leaves out the first message of its failed one, without a cause."""
    message = failed.messages[0]
    again = bool(then.messages) and then.messages[0].offset > message.offset
    buried = message.times >= history.group(then.group).reconsume_max
    same = then.client == failed.client and failed.span.end < then.span.start
    return (
        again
        and same
        and not buried
        and not causes_of(history).between(then.group, failed.span.start, then.span.start)
    )


def _orderly(
    history: Record, begun: dict[tuple[str, str], set[int]]
) -> Iterator[tuple[Read, list[Delivered]]]:
    """Yield calls of orderly listeners, with the messages that their group receives for the first time."""
    for read in history.orderly_calls:
        places = begun[read.group, read.queue]
        yield read, [message for message in read.messages if message.offset not in places]
        places.update([message.offset for message in read.messages])


def broadcast_gap(history: Record) -> Finding:
    """C15: a member of a broadcast group receives all messages between its first and its last."""
    tally = Tally()
    delivered: dict[tuple[str, str], set[int]] = defaultdict(set)
    broadcasts = history.broadcasts
    for read in history.reads if broadcasts else ():
        if read.group in broadcasts:
            delivered[read.client, read.queue].update([message.offset for message in read.messages])
    for (client, queue), mine in delivered.items():
        if not mine:
            continue
        tally.looked += len(mine)
        low, high = min(mine), max(mine)
        for offset in sorted(o for o in history.places[queue].keys() - mine if low < o < high):
            tally.found(f"{client} missed offset {offset} of {queue}", queue=queue, offset=offset)
    return tally.finding("delivered")
