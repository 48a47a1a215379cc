"""Rules about places: one message per offset, one offset per message, and no message that was not sent."""

from collections import defaultdict
from itertools import pairwise
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.history.lines import Delivered, topic_of
from mqproof.conformance.history.record import OK, UNKNOWN, Read, Record, Sent, is_own


def inconsistent_offsets(history: Record) -> Finding:
    """A08: one offset holds one value, for all readers and for the producer's answer."""
    return history.once(_held)[0].finding("places")


def replica_divergence(history: Record) -> Finding:
    """C05: two replicas return the same message at an offset.

    Needs polls that name the node that responded.
    """
    return history.once(_held)[1].finding("places_read_twice")


def _held(history: Record) -> tuple[Tally, Tally]:
    """Return conflicts with a producer's answer or within a node, and conflicts between two nodes."""
    one, two = Tally(), Tally()
    holders: dict[str, dict[int, tuple[Read, Delivered]]] = defaultdict(dict)
    two.looked = sum(len(read.messages) for read in history.reads if read.node)
    one.looked = sum(map(len, history.places.values()))
    for sight in history.sights:
        read, message = sight
        queue, offset = read.queue, message.offset
        held = holders[queue]
        holder = held.get(offset)
        if holder is None:
            pass
        elif holder[1].id == message.id:
            continue
        elif reason := history.forgets(holder[0].at, read.at):
            one.explain(reason, queue=queue, offset=offset)
        else:
            was = holder[0]
            elsewhere = read.node != was.node
            where = f" at {was.node or '?'} and {read.node or '?'}" if elsewhere else ""
            text = f"{queue} offset {offset} was read as {holder[1].id} and as {message.id}{where}"
            (two if elsewhere else one).found(text, queue=queue, offset=offset)
            continue
        held[offset] = sight
        sent = _answered(history, queue, offset, read.at)
        # The later messages of a batch follow the first: A12 judges that.
        if sent is None or sent.place or sent.message.id == message.id:
            continue
        if reason := history.excuse(sent, read.at) or history.forgets(read.at, sent.span.end):
            one.explain(reason, queue=queue, offset=offset)
        else:
            text = f"{queue} offset {offset} was acknowledged for {sent.message.id}, but {read.client} read"
            one.found(f"{text} {message.id} there", queue=queue, offset=offset)
    return one, two


def _answered(history: Record, queue: str, offset: int, before: int) -> Sent | None:
    """Return the send that, by the producers' answers, has its message at the offset before that index.

    If two sends were answered with the offset, and nothing in between freed it, this is the first: C01 judges
    the second.
    """
    sent = history.acked.get(queue, _NOTHING).get(offset)
    if not history.answered_again:
        return sent
    for later in history.answered_again.get(queue, _NEVER_AGAIN).get(offset, ()):
        if sent and later.span.end < before and history.excuse(sent, later.span.end):
            sent = later
    return sent


_NOTHING: Final[dict[int, Sent]] = {}
_NEVER_AGAIN: Final[dict[int, list[Sent]]] = {}


def offset_collision(history: Record) -> Finding:
    """C01: no two sends are answered with the same place."""
    tally = Tally()
    tally.looked = len(history.placed)
    for queue, places in history.answered_again.items():
        for offset, later in places.items():
            for first, sent in pairwise((history.acked[queue][offset], *later)):
                if first.message.id == sent.message.id:
                    continue
                if reason := history.excuse(first, sent.span.end):
                    tally.explain(reason, queue=queue, offset=offset)
                else:
                    text = f"{queue} offset {offset} was acknowledged for {first.message.id}"
                    tally.found(f"{text} and for {sent.message.id}", queue=queue, offset=offset)
    return tally.finding("acknowledged")


def duplicate_offset(history: Record) -> Finding:
    """A06: a message is at one place, unless a retry or an unknown outcome explains a second one.

    A broker that crashed may also store a delayed message again.
    """
    tally = Tally()
    places: dict[str, tuple[str, int]] = {}
    reported: set[str] = set()
    tries: dict[str, int] = {}

    def again(id_: str, place: tuple[str, int], queue: str, offset: int, index: int) -> None:
        if id_ in reported:
            return
        reported.add(id_)
        if not tries:
            for each in history.sends:
                tries[each.message.id] = tries.get(each.message.id, 0) + each.attempts
        sent = history.by_id.get(id_)
        forgotten = (
            sent is not None and sent.message.deliver_at and history.ends.between(sent.span.start, index)
        )
        if tries.get(id_, 1) > 1 or forgotten:
            tally.explained += 1
        else:
            text = f"{id_} is at offset {place[1]} of {place[0]} and at offset {offset} of {queue}"
            tally.found(text, id=id_, queue=queue, offset=offset)

    for sent in history.placed:
        if not sent.place:
            queue, offset = sent.queue, sent.offset
            place = places.setdefault(sent.message.id, here := (queue, offset))
            if place is not here and place != here:
                again(sent.message.id, place, queue, offset, sent.span.end)
    own = {queue for queue in history.places if is_own(queue)}
    for read, message in history.sights:
        if (queue := read.queue) in own:
            known = places.get(message.id)
            if known is None:
                places[message.id] = queue, message.offset
            elif known[1] != message.offset or known[0] != queue:
                again(message.id, known, queue, message.offset, read.at)
    tally.looked = len(places)
    return tally.finding("messages")


def phantom(history: Record) -> Finding:
    """A04, and A05 `recovered`: a delivered message was sent before, to that topic, and did not surely fail.

    A message whose send has an unknown outcome may be delivered: that is counted, and legal.
    """
    tally = Tally()
    reported: set[str] = set()
    failed: set[str] = set()
    unknown: set[str] = set()
    by_id = history.by_id
    first = by_id if history.are_keys_unique else {s.message.id: s for s in reversed(history.sends)}
    for sent in history.sends:
        if sent.span.outcome is OK:
            continue
        id_ = sent.message.id
        if sent.span.outcome is UNKNOWN:
            unknown.add(id_)
        else:
            failed.add(id_)
    if failed:
        failed -= unknown | {sent.message.id for sent in history.stored}
    recovered: set[str] = set()
    homes = {queue: topic_of(queue) if is_own(queue) else "" for queue in history.places}
    for read, message in history.sights:
        id_ = message.id
        if id_ in unknown:
            recovered.add(id_)
        sent_first = first.get(id_)
        if sent_first is None:
            why = "was never sent"
        elif id_ in failed:
            why = "was refused"
        elif sent_first.span.start >= read.at:
            why = "was sent later"
        elif (home := homes[read.queue]) and (topic := by_id[id_].topic) != home:
            why = f"was sent to {topic}"
        else:
            continue
        if id_ not in reported:
            reported.add(id_)
            tally.found(f"{read.client} received {id_}, which {why}", id=id_, queue=read.queue)
    tally.looked = len(history.seen)
    return tally.finding("messages", recovered=len(recovered))


def mutated(history: Record) -> Finding:
    """C17: the body, and the tag and key if both sides record them, are delivered as they were sent."""
    tally = Tally()
    by_id, ambiguous = history.by_id, _ambiguous(history)
    for read, delivered in history.sights:
        if delivered.body and (sent := by_id.get(delivered.id)) and (body := sent.message.body):
            if delivered.id in ambiguous:
                continue
            tally.looked += 1
            if body != delivered.body:
                text = f"{delivered.id} was sent as {body} and read as {delivered.body} by {read.client}"
                tally.found(text, id=delivered.id, queue=read.queue, offset=delivered.offset)
            message = sent.message
            if message.tag == delivered.tag and message.key == delivered.key:
                continue
            for name, was, is_ in (("tag", message.tag, delivered.tag), ("key", message.key, delivered.key)):
                if was and is_ and was != is_:
                    text = f"{delivered.id} was sent with {name} {was!r} and read with {is_!r}"
                    tally.found(f"{text} by {read.client}", id=delivered.id, queue=read.queue)
    return tally.finding("bodies")


def _ambiguous(history: Record) -> set[str]:
    """Return the keys of several messages with different bodies: C16 reports them."""
    if history.are_keys_unique:
        return set()
    by_id = history.by_id
    return {s.message.id for s in history.sends if s.message.body != by_id[s.message.id].message.body}


def message_ids(history: Record) -> Finding:
    """C16: a unique key belongs to one message, and an offset id to one place.

    A crash may free an offset id: its record may then be another message.
    """
    tally = Tally()
    _judge_keys(history, tally)
    _judge_offset_ids(history, tally)
    return tally.finding("ids")


def keys(history: Record) -> Finding:
    """C16, the part about unique keys."""
    _judge_keys(history, tally := Tally())
    return tally.finding("ids")


def offset_ids(history: Record) -> Finding:
    """C16, the part about offset ids."""
    _judge_offset_ids(history, tally := Tally())
    return tally.finding("ids")


def _judge_keys(history: Record, tally: Tally) -> None:
    bodies: dict[str, tuple[str, str]] = {}
    tally.looked += len(history.sends)
    for sent in () if history.are_keys_unique else history.sends:
        mine = (sent.topic, sent.message.body)
        if bodies.setdefault(sent.message.id, mine) != mine:
            tally.found(f"{sent.message.id} is the key of two messages", id=sent.message.id)


def _judge_offset_ids(history: Record, tally: Tally) -> None:
    answered: dict[str, Sent] = {}
    for sent in history.placed:
        if not sent.offset_id:
            continue
        first = answered.setdefault(sent.offset_id, sent)
        if first is sent or (first.queue, first.offset) == (sent.queue, sent.offset):
            continue
        if reason := history.excuse(first, sent.span.end):
            tally.explain(reason, offset_id=sent.offset_id)
            answered[sent.offset_id] = sent
        else:
            tally.found(
                f"offset id {sent.offset_id} was acknowledged for two places", offset_id=sent.offset_id
            )
    places: dict[str, tuple[Read, Delivered]] = {}
    own = {queue for queue in history.places if is_own(queue)}
    for sight in history.sights:
        read, message = sight
        # A replica other than the requested one uses its own address.
        if not message.offset_id or read.node or read.queue not in own:
            continue
        tally.looked += 1
        first_sight = places.setdefault(message.offset_id, sight)
        place = here = (read.queue, message.offset)
        if first_sight is not sight:
            place = (first_sight[0].queue, first_sight[1].offset)
        if place == here and (sent_there := answered.get(message.offset_id)):
            answer = (sent_there.queue, sent_there.offset)
            if answer != here and not history.excuse(sent_there, read.at):
                place = answer
        if place != here:
            text = f"offset id {message.offset_id} belongs to {place[0]} {place[1]} and to {read.queue}"
            tally.found(f"{text} {message.offset}", offset_id=message.offset_id)


def misplaced(history: Record) -> Finding:
    """C04 (cq-order): a poll returns messages of its queue, from the requested offset to its `next`."""
    tally = Tally()
    for read in history.polls:
        if read.offset >= 0 and read.next >= 0:
            for message in read.messages:
                tally.looked += 1
                if message.queue:
                    text = (
                        f"{read.client} requested {read.queue} and received {message.id} of {message.queue}"
                    )
                    tally.found(text, queue=read.queue, offset=message.offset)
                elif not read.offset <= message.offset < read.next:
                    text = (
                        f"{read.client} requested {read.offset} of {read.queue} and received {message.id} of"
                    )
                    tally.found(
                        f"{text} offset {message.offset}, next offset {read.next}",
                        queue=read.queue,
                        offset=message.offset,
                    )
    return tally.finding("polled")


def times(history: Record) -> Finding:
    """C18: along a queue store times do not go back, and no message is stored before it was born."""
    tally = Tally()
    skew = history.setup.skew_ms * 1_000_000
    stored: dict[str, dict[int, Delivered]] = {}
    for read, message in history.sights:
        if message.stored:
            stored.setdefault(read.queue, {}).setdefault(message.offset, message)
    for queue, found in stored.items():
        latest, offsets = 0, sorted(found)
        for offset in offsets:
            message = found[offset]
            tally.looked += 1
            if message.stored < latest - skew:
                text = f"{message.id} at {offset} of {queue} was stored {latest - message.stored} ns before"
                tally.found(f"{text} the message before it", id=message.id, queue=queue, offset=offset)
            if message.born and message.born > message.stored + skew:
                text = f"{message.id} at {offset} of {queue} was created {message.born - message.stored} ns"
                tally.found(f"{text} after it was stored", id=message.id, queue=queue, offset=offset)
            latest = max(latest, message.stored)
    return tally.finding("stored")
