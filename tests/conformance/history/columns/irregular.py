"""Healthy histories with one change: for each condition of the sieve, a queue that does not meet it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.history import lines as of
from mqproof.conformance.history.lines import (
    BoundsValue,
    CommitValue,
    ConsumeValue,
    Delivered,
    Group,
    Line,
    Message,
    PollValue,
    SendValue,
    Type,
)
from tests.conformance.history.columns.healthy import healthy

QUEUE: Final = "T/b/0"
ORDERS: Final = "O/b/0"


@dataclass
class Edit:
    """The lines of a healthy history, which are changed in place."""

    lines: list[Line]

    def operations(self, kind: type, **where: Any) -> list[tuple[int, int]]:
        """Return the places of the two lines of the operations whose first line has these values."""
        begun: dict[int | str, int] = {}
        found = []
        for place, line in enumerate(self.lines):
            if isinstance(line, of.Setup):
                continue
            if line.type is Type.INVOKE:
                begun[line.process] = place
            elif isinstance(line, kind):
                first = self.lines[begun[line.process]]
                if all(getattr(first.value, name) == value for name, value in where.items()):
                    found.append((begun[line.process], place))
        return found

    def put(self, place: int, **changes: Any) -> None:
        """Change values of a line."""
        line: Any = self.lines[place]
        self.lines[place] = replace(line, value=replace(line.value, **changes))

    def value(self, place: int) -> Any:
        return self.lines[place].value

    def polls(self, group: str, least: int = 2, queue: str = QUEUE) -> list[tuple[int, int]]:
        """Return the polls of a group that returned so many messages at least."""
        found = self.operations(of.Poll, group=group, queue=queue)
        return [(first, last) for first, last in found if len(self.value(last).messages) >= least]

    def append(self, kind: type, asked: Any, answer: Any, process: str = "x") -> None:
        time = self.lines[-1].time
        self.lines.append(kind(0, time, process, Type.INVOKE, asked))
        self.lines.append(kind(0, time, process, Type.OK, answer))

    def deliver(self, offset: int, **changes: Any) -> None:
        """Change a message of the queue wherever it is delivered."""
        known = self.at[QUEUE][offset].id
        for place, line in enumerate(self.lines):
            value: Any = line.value
            if isinstance(line, of.Poll | of.Consume):
                messages = [replace(each, **changes) if each.id == known else each for each in value.messages]
                self.put(place, messages=tuple(messages))

    @property
    def at(self) -> dict[str, list[Delivered]]:
        """The messages of each queue, from what the group d read."""
        found: dict[str, list[Delivered]] = {}
        for first, last in self.operations(of.Poll, group="d"):
            found.setdefault(self.value(first).queue, []).extend(self.value(last).messages)
        return found

    def finished(self) -> list[Line]:
        time, found = 0, list[Line]()
        for index, line in enumerate(self.lines):
            time = max(time, line.time)
            found.append(replace(line, index=index, time=time))
        return found


def irregular(condition: str) -> list[Line]:
    """Return the history for a condition."""
    edit = Edit(healthy(1, 10).lines)
    CHANGES[condition](edit)
    return edit.finished()


def _commit(edit: Edit, offset: int) -> None:
    first, last = edit.operations(of.Commit, group="g", queue=QUEUE)[-1]
    edit.put(first, offset=offset)
    edit.put(last, offset=offset)


def _overlap(edit: Edit, kind: type, one: Any, two: Any) -> None:
    """Add two operations of different processes, each of which begins before the other one ends."""
    time = edit.lines[-1].time
    values = (("x", Type.INVOKE, one), ("y", Type.INVOKE, two), ("x", Type.OK, one), ("y", Type.OK, two))
    edit.lines += [kind(0, time, process, type_, value) for process, type_, value in values]


def _commits_overlap(edit: Edit) -> None:
    end = len(edit.at[QUEUE])
    _overlap(edit, of.Commit, CommitValue("c", QUEUE, end - 1), CommitValue("c", QUEUE, end))


def _calls_overlap(edit: Edit) -> None:
    _orderly(edit)
    stored = edit.at[QUEUE]
    one, two = (ConsumeValue("new", QUEUE, name, (stored[at],)) for at, name in enumerate("xy"))
    _overlap(edit, of.Consume, one, two)


def _orderly(edit: Edit) -> None:
    _groups(edit, new=Group(("T",), orderly=True))
    edit.put(0, stall_within_ms=None)


def _last_sent_late(edit: Edit) -> None:
    _only_calls(edit)
    sends = edit.operations(of.Send, topic="T")
    first, last = max(
        (each for each in sends if edit.value(each[1]).queue == QUEUE),
        key=lambda each: edit.value(each[1]).offset,
    )
    moved = [replace(edit.lines[place], process="late") for place in (first, last)]
    del edit.lines[last], edit.lines[first]
    edit.lines += moved


def _only_calls(edit: Edit) -> None:
    """Leave out the groups that poll without tags."""
    kept = [line for line in edit.lines if getattr(line.value, "group", "") not in ("g", "d")]
    begun = {line.process for line in kept}
    edit.lines[:] = [
        line for line in kept if line.process in begun and not str(line.process).startswith(("g", "d0", "d1"))
    ]


def _swapped_polls(edit: Edit) -> None:
    stored = edit.at[QUEUE]
    for process, low, high in (("x", 2, len(stored)), ("y", 0, 2)):
        answer = PollValue(messages=tuple(stored[low:high]), next=high, max=len(stored))
        edit.append(of.Poll, PollValue("new", QUEUE, low), answer, process)


def _new_group(edit: Edit, offset: int, next_: int, group: str = "new") -> None:
    """Add an empty poll."""
    edit.append(of.Poll, PollValue(group, QUEUE, offset), PollValue(next=next_, max=1000))


def _back_past_an_unselected(edit: Edit) -> None:
    offset = next(n for n, each in enumerate(edit.at[QUEUE]) if each.tag == "B")
    _new_group(edit, offset + 1, offset, "f")


def _early(edit: Edit) -> None:
    first, last = edit.polls("g")[0]
    edit.put(first, offset=1)
    edit.put(last, messages=edit.value(last).messages[:-1])


def _beyond(edit: Edit) -> None:
    answer = PollValue(messages=tuple(edit.at[QUEUE][1:3]), next=2, max=1000)
    edit.append(of.Poll, PollValue("new", QUEUE, 0), answer)


def _shortened(group: str) -> Callable[[Edit], None]:
    def change(edit: Edit) -> None:
        _, last = edit.polls(group, 3 if group == "g" else 2)[0]
        edit.put(last, messages=edit.value(last).messages[1:])

    return change


def _reversed(edit: Edit) -> None:
    _, last = edit.polls("g")[0]
    edit.put(last, messages=edit.value(last).messages[::-1])


def _groups(edit: Edit, **groups: Group) -> None:
    edit.put(0, groups=edit.value(0).groups | groups)


def _two_broadcasts(edit: Edit) -> None:
    _groups(edit, c=Group(topics=("T", "O"), broadcast=True))
    for place, _ in edit.operations(of.Consume, group="b", client="b1"):
        edit.put(place, client="c0")


def _other_tag(edit: Edit) -> None:
    for place, _ in edit.operations(of.Consume, group="c", queue=QUEUE):
        if {each.tag for each in edit.value(place).messages} == {"B"}:
            edit.put(place, group="f")
            return
    raise AssertionError("no call has only such messages")


def _twice_to_a_member(edit: Edit) -> None:
    place, _ = edit.operations(of.Consume, group="b", queue=QUEUE, client="b2")[-1]
    edit.put(place, client="b1")


def _gap(edit: Edit) -> None:
    place, _ = edit.operations(of.Consume, group="b", queue=QUEUE, client="b2")[1]
    edit.put(place, messages=())


def _send(edit: Edit, offset: int, process: str) -> Delivered:
    """Add a send of a new message at this offset; return the message."""
    answer = SendValue(status="SEND_OK", queue=QUEUE, offset=offset)
    edit.append(of.Send, SendValue("T", (Message(f"new{offset}"),)), answer, process)
    return Delivered(f"new{offset}", offset)


def _unread(edit: Edit) -> None:
    end = len(edit.at[QUEUE])
    for offset in range(end):
        edit.deliver(offset, offset_id="")
    _send(edit, end, "x")


def _sent_in_another_order(edit: Edit) -> None:
    end = len(edit.at[QUEUE])
    later, earlier = _send(edit, end + 1, "x"), _send(edit, end, "y")
    for message in (earlier, later):
        answer = PollValue(messages=(message,), next=message.offset + 1, max=end + 2)
        edit.append(of.Poll, PollValue("new", QUEUE, message.offset), answer)


def _behind(edit: Edit) -> None:
    first, last = edit.operations(of.Consume, group="o", queue=ORDERS)[-1]
    edit.append(of.Assign, of.AssignValue("o", "o1", (ORDERS,)), of.AssignValue("o", "o1", (ORDERS,)))
    for place, _ in edit.operations(of.Consume, group="o", queue=ORDERS):
        edit.put(place, client="o1")
    del edit.lines[last], edit.lines[first]
    edit.lines[-1] = replace(edit.lines[-1], time=edit.lines[-1].time + 10**12)


def _calls_exchanged(edit: Edit) -> None:
    _orderly(edit)
    one, two = [each for each in edit.at[QUEUE] if each.key == "k1"][:2]
    for message in (two, one):
        edit.append(of.Consume, ConsumeValue("new", QUEUE, "x", (message,)), ConsumeValue())


def _drain_by_another(edit: Edit) -> None:
    for place in edit.operations(of.Drain)[0]:
        edit.put(place, group="none")


def _end_before_known(edit: Edit) -> None:
    edit.append(of.Bounds, BoundsValue(QUEUE), BoundsValue(QUEUE, 0, 1))


def _resumed_elsewhere(edit: Edit) -> None:
    (first, last), *_ = edit.polls("g", 2)[1:]
    edit.put(first, offset=edit.value(first).offset + 1)
    edit.put(last, messages=edit.value(last).messages[1:])


def _one_node(edit: Edit) -> None:
    edit.put(edit.polls("g", 1)[0][1], node="n1")


def _received_twice(edit: Edit) -> None:
    places = edit.operations(of.Consume, group="c", queue=QUEUE)
    edit.put(places[-1][0], messages=edit.value(places[0][0]).messages)


def _body(edit: Edit) -> None:
    edit.deliver(3, body="other")


def _two_dates(edit: Edit) -> None:
    _, last = edit.polls("d", 1)[0]
    head, *rest = edit.value(last).messages
    edit.put(last, messages=(replace(head, stored=head.stored + 1), *rest))


def _unknown_offset(edit: Edit) -> None:
    _, last = edit.polls("d", 1)[-1]
    *rest, tail = edit.value(last).messages
    edit.put(last, messages=(*rest, replace(tail, offset=tail.offset + 1)))


def _lagging(edit: Edit) -> None:
    edit.put(0, lag_max_ms=0)


def _immediate(edit: Edit) -> None:
    edit.put(0, visible_within_ms=0)


def _hole(edit: Edit) -> None:
    sends = edit.operations(of.Send, topic="T")
    last = max(place for _, place in sends if edit.value(place).queue == QUEUE)
    edit.put(last, offset=edit.value(last).offset + 9)


CHANGES: Final[dict[str, Callable[[Edit], None]]] = {
    "a client is in two broadcast groups": _two_broadcasts,
    "a commit is ahead": lambda edit: _commit(edit, 99),
    "a consumer continued elsewhere": _resumed_elsewhere,
    "a group drained without a message": _drain_by_another,
    "a group received a message twice": _received_twice,
    "a group received another tag": _other_tag,
    "a member missed a message": _gap,
    "a member received a message twice": _twice_to_a_member,
    "a message was not delivered": _unread,
    "a message was stored before its birth": lambda edit: edit.deliver(3, born=1 << 59),
    "a poll has no offset": lambda edit: _new_group(edit, -1, -1),
    "a poll lags": _lagging,
    "a poll passed a message": _shortened("g"),
    "a poll passed a selected message": _shortened("f"),
    "a poll passed the end": lambda edit: _new_group(edit, 3, 999, "f"),
    "a poll returned an earlier offset": _early,
    "a poll returned an offset beyond its next": _beyond,
    "a poll was moved back": _back_past_an_unselected,
    "a read is not in the order of offsets": _reversed,
    "a {name} differs from the one that was sent": _body,
    "an empty poll counts": _immediate,
    "an end is stated before a known message": _end_before_known,
    "an orderly group is broadcast": lambda edit: _groups(
        edit, o=Group(("O",), orderly=True, broadcast=True)
    ),
    "an orderly group is not at the end": _behind,
    "calls are not in the order of offsets": _calls_exchanged,
    "calls overlap": _calls_overlap,
    "commits go back": lambda edit: _commit(edit, 0),
    "commits overlap": _commits_overlap,
    "offsets of sends are not contiguous": _hole,
    "only some polls name their node": _one_node,
    "polls overtake each other": _swapped_polls,
    "read before its send": _last_sent_late,
    "sends are not in the order of offsets": _sent_in_another_order,
    "store times go back": lambda edit: edit.deliver(3, stored=1, born=0),
    "unknown offsets": _unknown_offset,
    "{name} of a place differ": _two_dates,
}
"""For each condition, a change after which a sieve without it finds something else."""
