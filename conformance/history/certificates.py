"""Certificates: for each verdict of some rules, the lines of the history that prove it.

A rule has subjects: the facts of the history that need a reason, such as an acknowledged message. For `held`,
the evidence is a reason for each subject, with the index of the line that shows it. For `violated`, it is the
subjects without a reason. The modules named `*_verifier.py` verify certificates without this code.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history.lines import topic_of
from mqproof.conformance.history.record import FAILED, NEVER, OK, Read, Reason, Record, Sent, is_own
from mqproof.conformance.history.rules.loss import is_passed, truncated
from mqproof.conformance.history.rules.order import assignments, causes_of
from mqproof.report.model import Verdict

WITHOUT_REASON_MAX: Final = 4
"""The maximum number of subjects without a reason in a certificate: one is a proof."""

Subject = tuple[int | str, ...]


class Fact(NamedTuple):
    """A fact that needs a reason; None if it has none."""

    subject: Subject
    reason: Reason | None


def certificates(history: Record, findings: Mapping[str, Finding]) -> Iterator[bytes]:
    """Yield a line of JSON for each rule that has a verifier."""
    for rule in CERTIFIED:
        found = findings[rule]
        evidence: list[tuple[Any, ...]] = []
        if found.verdict is Verdict.HELD:
            evidence = [(fact.subject, *fact.reason) for fact in _facts(history, rule, found) if fact.reason]
        elif found.verdict is Verdict.VIOLATED:
            without = (fact.subject for fact in _facts(history, rule, found) if fact.reason is None)
            evidence = [(subject,) for subject in islice(without, WITHOUT_REASON_MAX)]
        verdict = Verdict.UNKNOWN if found.verdict is Verdict.NOT_TESTED else found.verdict
        yield msgspec.json.encode({"rule": rule, "verdict": verdict.value, "evidence": evidence}) + b"\n"


def _facts(history: Record, rule: str, found: Finding) -> Iterator[Fact]:
    """Yield the facts of a rule, from its own search or from what the rule found."""
    if rule in FACTS:
        yield from FACTS[rule](history)
    else:
        yield from (Fact(each.subject, (each.kind, each.line)) for each in found.explained)
        yield from (Fact(tuple(witness.values.values()), None) for witness in found.witnesses)


def _lost_writes(history: Record) -> Iterator[Fact]:
    first: dict[str, int] = {}
    for read in history.reads:
        for message in read.messages:
            first.setdefault(message.id, read.at)
    for sent in history.placed:
        if sent.status != "SEND_OK":
            continue
        subject = sent.span.start, sent.place
        if (index := first.get(sent.message.id)) is not None:
            yield Fact(subject, ("read", index))
        elif is_passed(history, sent):
            yield Fact(subject, history.excuse(sent) or _end(history, sent))


def _end(history: Record, sent: Sent) -> Reason | None:
    """Return the answer that the queue begins after the message, or ended before it."""
    for step in history.bounds:
        if step.value.queue == sent.queue and step.value.min > sent.offset:
            return "expired", step.span.end
    if id(sent) not in history.once(truncated):
        return None
    for step in history.bounds:
        if (
            step.value.queue == sent.queue
            and step.span.start > sent.span.end
            and 0 <= step.value.max <= sent.offset
        ):
            return "end", step.span.end
    for read in history.reads:
        end = read.max if read.max >= 0 else -1 if read.messages else read.offset
        is_poll = read.kind == "poll" and read.queue == sent.queue and read.span.start > sent.span.end
        if is_poll and 0 <= end <= sent.offset:
            return "end", read.span.end
    return None


def _phantoms(history: Record) -> Iterator[Fact]:
    by_id = history.by_id
    first: dict[str, int] = {}
    topics: dict[str, set[str]] = {}
    for read, message in history.sights:
        first.setdefault(message.id, read.at)
        if is_own(read.queue):
            topics.setdefault(message.id, set()).add(topic_of(read.queue))
    sends: dict[str, list[Sent]] = {}
    for sent in history.sends:
        if sent.message.id in first:
            sends.setdefault(sent.message.id, []).append(sent)
    for id_, at in first.items():
        mine = sends.get(id_, [])
        is_sound = any(sent.span.outcome is not FAILED for sent in mine) and topics.get(id_, set()) <= {
            by_id[id_].topic
        }
        start = next((sent.span.start for sent in mine if is_sound and sent.span.start < at), None)
        yield Fact((id_,), None if start is None else ("sent", start))


def _second_places(history: Record) -> Iterator[Fact]:
    places: dict[str, tuple[str, int]] = {}
    again: dict[str, int] = {}
    seen = [(s.message.id, (s.queue, s.offset), s.span.end) for s in history.placed if not s.place]
    seen += [(m.id, (r.queue, m.offset), r.at) for r, m in history.sights if is_own(r.queue)]
    for id_, place, at in seen:
        if places.setdefault(id_, place) != place:
            again.setdefault(id_, at)
    sends: dict[str, list[Sent]] = {}
    for sent in history.sends if again else ():
        sends.setdefault(sent.message.id, []).append(sent)
    for id_, at in again.items():
        mine = sends.get(id_, [])
        retried = next((sent.span.start for sent in mine if sent.attempts > 1 or len(mine) > 1), None)
        if retried is not None:
            yield Fact((id_,), ("retry", retried))
            continue
        delayed = mine[-1].span.start if mine and mine[-1].message.deliver_at else NEVER
        index = history.ends.first(delayed, at)
        yield Fact((id_,), None if index is None else ("fault", index))


def _overtaken_sends(history: Record) -> Iterator[Fact]:
    last: dict[tuple[int | str, str], Sent] = {}
    for sent in history.placed:
        if sent.place:
            continue
        at = sent.span.process, sent.queue
        before = last.get(at)
        if before is not None and sent.offset < before.offset:
            yield Fact((sent.span.start,), history.excuse(before, sent.span.end))
        last[at] = sent


def _repetitions(history: Record) -> Iterator[Fact]:
    last: dict[tuple[str, str], dict[int, Read]] = defaultdict(dict)
    for read in history.reads:
        if read.kind == "pop":
            continue
        receiver = f"{read.group} {read.client}" if read.group in history.broadcasts else read.group
        places = last[receiver, read.queue]
        for message in read.messages:
            before = places.get(message.offset)
            places[message.offset] = read
            if before is not None:
                yield Fact((read.span.start, message.offset), _again(history, before, read))


def _again(history: Record, before: Read, read: Read) -> Reason | None:
    """Return why a group received a place again."""
    if before.kind == "consume" and before.span.outcome is not OK:
        return "failed", before.span.start
    if read.seek:
        return "seek", read.span.start
    causes = causes_of(history)
    for kind, events in (("fault", causes.of_all), ("move", causes.of_group.get(read.group))):
        index = events.first(before.span.start, read.at) if events else None
        if index is not None:
            return kind, index
    steps = history.once(assignments).get((read.group, read.client), [])
    place = bisect_left(steps, before.at, key=itemgetter(0))
    if read.client != before.client and place and read.queue in steps[place - 1][1]:
        return "owner", steps[place - 1][0]
    return None


FACTS: Final[dict[str, Callable[[Record], Iterator[Fact]]]] = {
    "A01": _lost_writes,
    "A04": _phantoms,
    "A06": _second_places,
    "A07": _repetitions,
    "A11": _overtaken_sends,
}
"""Maps the rules that have certificates to their facts."""

CERTIFIED: Final = (
    *FACTS, "A08", "A09", "A10", "A12", "A13", "C01", "C04.1", "C04.2", "C05", "C07", "C10.1", "C11", "C14",
    "C15", "C16", "C17", "C18",
)  # fmt: skip
"""The rules that have certificates. Those without an entry in FACTS are certified by what the rule found."""
