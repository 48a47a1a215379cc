"""Rules about redelivery: delays, retries, dead letters, invisibility."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from mqproof.conformance.engine.finding import Finding, Tally, not_judged
from mqproof.conformance.history.lines import DEAD, Delivered, topic_of
from mqproof.conformance.history.record import FAILED, NEVER, OK, Read, Record, Sent, Step
from mqproof.conformance.history.rules.service import calm, calm_at

_MS = 1_000_000


def timer(history: Record) -> Finding:
    """C12: a delayed message is not delivered before its time, nor after it was recalled.

    If the setup states `deliver_within_ms`, it is not delivered later than that; a fault extends the bound.
    """
    tally = Tally()
    skew = history.setup.skew_ms * _MS
    within = history.setup.deliver_within_ms
    due = {sent.message.id: sent for sent in history.sends if sent.message.deliver_at}
    recalled = {s.value.id: s.span.end for s in history.recalls if s.span.outcome is OK}
    if not due and not recalled:
        return not_judged()
    delivered: set[str] = set()
    topics = history.delayed_topics | {history.by_id[i].topic for i in recalled if i in history.by_id}
    queues = {queue for queue in history.places if topic_of(queue) in topics}
    for read in history.received:
        if read.queue not in queues:
            continue
        # The latest time at which the messages can have been delivered.
        time = read.span.began if read.kind == "consume" else read.span.ended
        for message in read.messages:
            id_ = message.id
            if id_ in recalled and recalled[id_] < read.span.start:
                tally.found(f"{id_} was recalled, but {read.client} received it", id=id_)
            if id_ not in due or id_ in delivered:
                continue
            delivered.add(id_)
            tally.looked += 1
            early = due[id_].message.deliver_at - skew - time
            if early > 0:
                tally.found(f"{id_} was delivered {early} ns early, to {read.client}", id=id_)
            late = min(read.span.began, time) - _put_off(history, due[id_], read.span.start) - skew
            if within is not None and late > within * _MS:
                tally.found(f"{id_} was delivered {late // _MS} ms late, to {read.client}", id=id_)
    for id_, sent in due.items():
        if within is None:
            break
        promised = _put_off(history, sent, NEVER - 1)
        over = history.last_time - promised - skew
        if sent.span.outcome is OK and id_ not in delivered and id_ not in recalled:
            tally.looked += 1
            if over > within * _MS and _read_since(history, sent.topic, promised + within * _MS):
                if reason := history.excuse(sent):
                    tally.explain(reason, id=id_)
                else:
                    tally.found(f"{id_} was not delivered within {over // _MS} ms after its time", id=id_)
    return tally.finding("delayed")


def _put_off(history: Record, sent: Sent, index: int) -> int:
    """Return when the message was due: not before the end of the last fault that had ended by the index.

    While a fault is active at the index, the message is due at NEVER.
    """
    window = calm_at(history.once(calm), index)
    return NEVER if window is None else max(sent.message.deliver_at, window.since)


def _read_since(history: Record, topic: str, time: int) -> bool:
    """Return whether a client read from the topic after that time and was answered."""
    return history.last_reads.get(topic, -1) > time


@dataclass(slots=True)
class _Returns:
    """The redelivery state of one message in one group."""

    failed: Read | None = None
    """The failed or unfinished call with the highest number of returns."""
    most: int = -1
    """Number of returns at that call."""
    kept: dict[tuple[str, int], "_Kept"] = field(default_factory=dict)
    """By queue and offset: after crashes there may be copies of the message."""
    done: set[tuple[str, int]] = field(default_factory=set)
    """The places at which the message was consumed."""
    dead: int = NEVER
    """The index at which it was seen among the dead letters."""


class _Kept(NamedTuple):
    """A place whose message is not consumed yet."""

    read: Read
    """The last call, which failed or did not end."""
    times: int
    """Number of returns at that call. A consumer that cannot return the message increments it and retries."""
    stored: int
    """Number of returns known to the broker."""


def retry_and_dead_letter(history: Record) -> Finding:
    """C13: a failed message is redelivered after its delay, with one more return, up to the maximum.

    Then it becomes a dead letter, no sooner, and is not redelivered. If a group's dead letters were drained,
    all of the required ones must be there. A failure at a place consumed by another member does not count if
    the queue was just taken away. If the setup states `deliver_within_ms`, a redelivery may be late by that
    time, and a fault extends the bound. A listener that exceeds its group's timeout, so that its message is
    redelivered while it runs, must not be recorded as `ok`.
    """
    tally = Tally()
    returns: dict[tuple[str, str], _Returns] = {}
    consumed: dict[str, dict[str, Read]] = defaultdict(dict)
    """By group and id, the call of each message that was consumed at its first delivery: nearly all."""
    broadcasts = history.broadcasts
    buried = {queue: topic_of(queue).removeprefix(DEAD) for queue in history.places if queue.startswith(DEAD)}

    def state(group: str, id_: str) -> _Returns:
        was = returns.get((group, id_))
        if was is None:
            was = returns[group, id_] = _Returns()
            if (call := consumed[group].get(id_)) is not None:
                was.done.add((call.queue, next(each.offset for each in call.messages if each.id == id_)))
        return was

    for read in history.received:
        group = buried.get(read.queue)
        if group is not None:
            for message in read.messages:
                _bury(history, tally, group, message.id, state(group, message.id), read.at)
        elif read.kind == "consume" and read.group not in broadcasts:
            mine, is_ok = consumed[read.group], read.span.outcome is OK
            tally.looked += len(read.messages)
            for message in read.messages:
                id_ = message.id
                is_first = message.times == 0 and is_ok and id_ not in mine
                if is_first and (read.group, id_) not in returns:
                    mine[id_] = read
                else:
                    _come(history, tally, read, message, state(read.group, id_))
    _missing(history, tally, returns)
    dead = sum(each.dead < NEVER for each in returns.values())
    return tally.finding("delivered", dead_letters=dead)


def _come(history: Record, tally: Tally, read: Read, message: Delivered, was: _Returns) -> None:
    group, times, place = history.group(read.group), message.times, (read.queue, message.offset)
    text = f"{message.id} was delivered to {read.group} with {times} returns"
    if was.dead < read.span.start:
        tally.found(f"{text}, but is a dead letter", id=message.id)
    elif times > was.most + 1:
        tally.found(f"{text}, {was.most + 1} are known", id=message.id)
    elif times > group.reconsume_max and place in was.kept and was.kept[place].times == times - 1:
        tally.explained += 1  # it could not be returned: its consumer still has it and retries
    elif times > group.reconsume_max:
        tally.found(f"{text}, at most {group.reconsume_max} expected", id=message.id)
    elif was.failed and times == was.most + 1 and was.most < len(group.retry_delays_ms):
        failed = was.failed.span
        since = failed.ended if failed.ended < NEVER else failed.began
        due = since + group.retry_delays_ms[was.most] * _MS - history.setup.skew_ms * _MS
        if read.span.began < due:
            tally.found(f"{text} {due - read.span.began} ns too early", id=message.id)
    if read.span.outcome is OK:
        was.kept.pop(place, None)
        was.done.add(place)
    else:
        stored = was.kept[place].stored if place in was.kept else times
        was.kept[place] = _Kept(read, times, stored)
        # With two owners, which C09 judges, the first failure returns the message.
        sooner = was.failed is not None and read.span.ended < was.failed.span.ended
        if times > was.most or (times == was.most and sooner):
            was.failed, was.most = read, times


def _bury(history: Record, tally: Tally, group: str, id_: str, was: _Returns, at: int) -> None:
    if was.dead == NEVER and was.most < (most := history.group(group).reconsume_max):
        text = f"{id_} is a dead letter of {group} after {max(was.most, 0)} returns"
        tally.found(f"{text}, {most} expected", id=id_)
    was.dead = min(was.dead, at)


def _missing(history: Record, tally: Tally, returns: dict[tuple[str, str], _Returns]) -> None:
    drained = {
        topic.removeprefix(DEAD): step.span.start
        for step in history.drains
        if step.span.end < NEVER
        for topic in step.value.topics
        if topic.startswith(DEAD)
    }
    for (group, id_), was in returns.items():
        most = history.group(group).reconsume_max
        end = drained.get(group, -1)
        if was.dead < NEVER or end < 0:
            continue
        failed = [
            kept.read
            for place, kept in was.kept.items()
            if kept.stored >= most and not (place in was.done and _was_reassigned(history, kept.read))
        ]
        if any(read.span.outcome is FAILED and read.span.end < end for read in failed):
            text = f"{id_} failed in {group} after {was.most} returns, but is not a dead letter"
            tally.found(text, id=id_, group=group)
        elif (late := _overdue(history, group, id_, was)) is not None:
            text = f"{id_} failed in {group} after {was.most} returns, and was not delivered again"
            tally.found(f"{text}: it is {late // _MS} ms late", id=id_, group=group)


def _overdue(history: Record, group: str, id_: str, was: _Returns) -> int | None:
    """Return how late a message is, in nanoseconds, that failed and was not delivered again; else None."""
    within, delays = history.setup.deliver_within_ms, history.group(group).retry_delays_ms
    failed = was.failed
    if within is None or failed is None or failed.span.outcome is not FAILED or was.done:
        return None
    if not 0 <= was.most < len(delays):
        return None
    sent = history.by_id.get(id_)
    if sent is None or history.excuse(sent):
        return None
    window = calm_at(history.once(calm), NEVER - 1)
    since = max(failed.span.ended, window.since) if window else NEVER
    over = history.last_time - since - (delays[was.most] + within + history.setup.skew_ms) * _MS
    return over if over > 0 else None


def _was_reassigned(history: Record, read: Read) -> bool:
    """Return whether an assignment of the member during the call, or the next one, lacks this queue."""
    steps = history.once(_assigned).get((read.group, read.client), [])
    first = bisect_right(steps, read.span.start, key=lambda step: step.span.start)
    after = bisect_right(steps, read.span.end, key=lambda step: step.span.start)
    later = (step.value for step in steps[first : max(after, first + 1)])
    return any(value.left or read.queue not in value.queues for value in later)


def _assigned(history: Record) -> dict[tuple[str, str], list[Step]]:
    """Return the assignments by group and member, in order."""
    steps: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for step in history.assigns:
        steps[step.value.group, step.value.client or str(step.span.process)].append(step)
    return steps


def invisibility(history: Record) -> Finding:
    """C11: a popped message is not delivered to others while it is invisible, or after its acknowledgement.

    If it was not acknowledged, it is delivered again, provided its group continues to pop.
    """
    tally = Tally()
    skew = history.setup.skew_ms * _MS
    acked: dict[tuple[str, str, int], int] = {}
    for step in history.acks:
        if step.span.outcome is OK:
            value = step.value
            acked.setdefault((value.group, value.queue, value.offset), step.span.end)
    requested_acks = {(s.value.group, s.value.queue, s.value.offset) for s in history.acks}
    hidden: dict[tuple[str, str, int], Read] = {}
    last: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    for read in history.reads:
        if read.kind != "pop":
            continue
        last[read.group, read.queue] = read.span.began
        for message in read.messages:
            at = (read.group, read.queue, message.offset)
            tally.looked += 1
            before = hidden.get(at)
            hidden[at] = read
            if before is None:
                continue
            if acked.get(at, NEVER) < read.span.start:
                tally.found(
                    f"{message.id} was acknowledged, but popped again by {read.client}", id=message.id
                )
            elif read.span.ended < before.span.began + before.invisible_ms * _MS - skew:
                text = f"{message.id} was popped by {before.client}, and by {read.client} while it was"
                tally.found(f"{text} invisible", id=message.id)
    within = history.setup.deliver_within_ms
    for at, read in hidden.items():
        if within is None:
            break
        again = read.span.ended + (read.invisible_ms + within) * _MS + skew
        if at not in requested_acks and last[at[0], at[1]] > again:
            text = (
                f"offset {at[2]} of {at[1]} was popped by {read.client}, not acknowledged, and never popped"
            )
            tally.found(f"{text} again", queue=at[1], offset=at[2])
    return tally.finding("popped")
