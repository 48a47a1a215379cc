"""The rules are applied to clean histories, and to the same histories with one injected anomaly."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history import lines
from mqproof.conformance.history.exact_delivery import LATER, SETUP, ExactDelivery, clean
from mqproof.conformance.history.injected import INJECTED, parts, redelivery
from mqproof.conformance.history.injected.parts import QUEUE, Injected
from mqproof.conformance.history.judge import judge
from mqproof.conformance.history.lines import Line, Setup
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.rules import ELSEWHERE, NOT_SEEN, RULES
from mqproof.report.model import Verdict
from mqproof.spec.catalogue import catalogue

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "conformance" / "histories.md").read_text(encoding="utf-8")
ID = re.compile(r"\b[ABCL][0-9]{2}(?:\.[0-9])?\b")
BY_ID = {rule.id: rule for rule in RULES}
ROWS = {f"{letter}{n:02}" for letter, last in (("A", 17), ("B", 6), ("C", 22)) for n in range(1, last + 1)}
SEEDS = st.integers(0, 2**20)
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def findings(history: list[Line]) -> dict[str, Finding]:
    return {judged.rule.id: judged.finding for judged in judge(history)}


def noticed(world: ExactDelivery) -> set[str]:
    """Return the violated rules, and A02 if it counts unseen messages; A02 itself is then unknown."""
    found = findings(world.lines)
    wrong = {id_ for id_, finding in found.items() if finding.verdict is Verdict.VIOLATED}
    return wrong | ({"A02"} if found["A02"].counts.get("unseen") else set())


# The table.


def test_every_anomaly_visible_to_a_client_has_a_rule_or_a_reason() -> None:
    ruled = {rule.id.partition(".")[0] for rule in RULES} - {"L01"}
    assert ruled | set(ELSEWHERE) == ROWS
    assert not ruled & set(ELSEWHERE)
    assert set(NOT_SEEN) <= ruled


def test_every_rule_has_an_injected_anomaly_and_a_catalogue_invariant() -> None:
    assert {each.rule for each in INJECTED.values()} == set(BY_ID)
    assert {rule.invariant for rule in RULES} <= set(catalogue())


def test_the_page_lists_every_rule_and_every_anomaly_without_one() -> None:
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("|")
    ]
    assert [row[:2] for row in cells if ID.fullmatch(row[0])] == [[rule.id, rule.name] for rule in RULES]
    without = [ID.findall(row[0]) for row in cells if ID.match(row[0]) and not ID.fullmatch(row[0])]
    assert sorted(id_ for row in without for id_ in row) == sorted(ELSEWHERE)
    parts = PAGE.partition("are not visible to a client.")[2].partition("\n\n")[0]
    assert sorted(ID.findall(parts)) == sorted(NOT_SEEN)


def test_rules_named_in_the_catalogue_judge_an_existing_invariant() -> None:
    """A rule named in an invariant's `rules` judges an invariant of the catalogue."""
    named = {name: i.id for i in catalogue().values() for name in i.rules}
    judged = {rule.name: rule.invariant for rule in RULES if rule.name in named}
    assert len(judged) > 10
    assert all(catalogue()[invariant] for invariant in judged.values())


# Clean histories, and injected anomalies.


@SLOW
@given(seed=SEEDS)
def test_a_clean_history_breaks_no_rule(seed: int) -> None:
    found = findings(clean(seed, 20).lines)
    assert {i for i, f in found.items() if f.verdict is Verdict.VIOLATED} == set()
    # A rule without relevant operations is undecided; the first count is the number of operations examined.
    assert not [i for i, f in found.items() if f.verdict is Verdict.UNKNOWN and next(iter(f.counts.values()))]


@pytest.mark.parametrize("each", INJECTED.values(), ids=INJECTED)
def test_an_injected_anomaly_is_found_and_no_other(each: Injected) -> None:
    world = clean(3)
    assert noticed(world) == set()
    each.inject(world)
    found = noticed(world)
    assert each.rule in found
    assert found <= {each.rule, *each.also}


@SLOW
@given(seed=SEEDS, each=st.sampled_from(sorted(INJECTED.values(), key=lambda p: p.name)))
def test_an_injected_anomaly_is_found_in_any_history(seed: int, each: Injected) -> None:
    world = clean(seed)
    each.inject(world)
    found = noticed(world)
    assert each.rule in found
    assert found <= {each.rule, *each.also}


@SLOW
@given(seed=SEEDS, each=st.sampled_from(sorted(INJECTED.values(), key=lambda p: p.name)))
def test_a_missing_line_prevents_held_and_proofs_by_absence(seed: int, each: Injected) -> None:
    world = clean(seed, 10)
    each.inject(world)
    del world.lines[random.Random(seed).randrange(1, len(world.lines) - 1)]
    for judged in judge(world.lines):
        assert judged.finding.verdict is not Verdict.HELD
        assert judged.finding.verdict is not Verdict.VIOLATED or not judged.rule.by_absence


# Events with a known cause. Each function injects one anomaly together with its cause.


def setup(world: ExactDelivery, **changes: object) -> None:
    world.edit(
        lambda line: replace(line, value=replace(line.value, **changes)) if isinstance(line, Setup) else line
    )


def lost_with_the_machine(world: ExactDelivery) -> None:
    setup(world, flush_mode="ASYNC_FLUSH")
    INJECTED["message-lost"].inject(world)
    world.fault("crash_os")
    world.fault("start")


def lost_with_the_master(world: ExactDelivery) -> None:
    INJECTED["weak-status-lost"].inject(world)
    world.fault("promote")


def cut_off_by_a_power_loss(world: ExactDelivery) -> None:
    setup(world, flush_mode="ASYNC_FLUSH")
    world.fault("lose_power")
    world.fault("start")
    INJECTED["queue-cut-off"].inject(world)


def no_client_waits_for_a_lost_tail(world: ExactDelivery) -> None:
    """After a loss by a power failure, no group is late and no orderly queue is blocked."""
    setup(world, flush_mode="ASYNC_FLUSH")
    for queue in (QUEUE, parts.ORDERED):
        parts.send(world, queue)
        world.queue(queue).pop()
    world.fault("lose_power")
    world.fault("start")
    for _ in range(2):
        for queue in (QUEUE, parts.ORDERED):
            parts.read(world, queue=queue, offset=len(world.queue(queue)))
        world.wait(120_000)


def freed_and_given_again(world: ExactDelivery) -> None:
    setup(world, flush_mode="ASYNC_FLUSH")
    message = parts.send(world)
    world.queue(QUEUE).pop()
    world.fault("crash_os")
    world.fault("start")
    again = parts.send(world, process="x2")
    parts.read(world, again)
    assert again.offset == message.offset


def given_again_after_a_flush_that_timed_out(world: ExactDelivery) -> None:
    parts.read(world, parts.given_again(world))


def an_offset_id_of_a_freed_place(world: ExactDelivery) -> None:
    """The earlier record was never synced, and its producer was notified of that."""
    message = world.message()
    at = world.append(QUEUE, message)
    answer = lines.SendValue(status="FLUSH_DISK_TIMEOUT", queue=QUEUE, offset=at, offset_id="freed")
    world.did("x1", lines.SendValue("T", (message,)), answer)
    world.queue(QUEUE).pop()
    world.fault("lose_power")
    world.fault("start")
    other = parts.send(world, parts.ORDERED)
    parts.read(world, replace(other, offset_id="freed"), queue=parts.ORDERED)


def another_tag_at_a_freed_place(world: ExactDelivery) -> None:
    """A group with a filter does not receive the message that is there now."""
    freed = world.message()  # of the tag to which the group subscribes
    while freed.tag != "A":
        freed = world.message()
    at = world.append(QUEUE, freed)
    answer = lines.SendValue(status="FLUSH_DISK_TIMEOUT", queue=QUEUE, offset=at)
    world.did("x1", lines.SendValue("T", (freed,)), answer)
    world.queue(QUEUE).pop()
    world.fault("lose_power")
    world.fault("start")
    other = world.message()
    while other.tag == "A":
        other = world.message()
    world.did("x2", lines.SendValue("T", (other,)), lines.SendValue(status="SEND_OK", queue=QUEUE, offset=at))
    world.append(QUEUE, other)
    parts.read(world, world.queue(QUEUE)[at])
    passed = lines.PollValue(next=at + 1, min=0, max=at + 1)
    world.did("x3", lines.PollValue("f", QUEUE, at, seek=True), passed)


def batch_sent_twice(world: ExactDelivery) -> None:
    batch = world.message(), world.message()
    at = [world.append(QUEUE, message) for message in (*batch, *batch)]
    answer = lines.SendValue(status="SEND_OK", queue=QUEUE, offset=at[2], attempts=2)
    world.did("x1", lines.SendValue("T", batch), answer)
    parts.read(world, *world.queue(QUEUE)[at[0] :])


def batch_cut_by_a_crash(world: ExactDelivery) -> None:
    setup(world, flush_mode="ASYNC_FLUSH")
    batch = world.message(), world.message()
    at = [world.append(QUEUE, message) for message in batch]
    answer = lines.SendValue(status="SEND_OK", queue=QUEUE, offset=at[0])
    world.did("x1", lines.SendValue("T", batch), answer)
    parts.read(world, *world.queue(QUEUE)[at[0] :])
    world.queue(QUEUE).pop()
    world.fault("crash_os")
    world.fault("start")
    parts.read(world, parts.send(world, process="x2"))


def sent_twice(world: ExactDelivery) -> None:
    message = world.message()
    at = [world.append(QUEUE, message) for _ in range(2)]
    answer = lines.SendValue(status="SEND_OK", queue=QUEUE, offset=at[1], attempts=2)
    world.did("x1", lines.SendValue("T", (message,)), answer)
    for offset in at:
        parts.read(world, world.queue(QUEUE)[offset])


def delivered_again_after_a_rebalance(world: ExactDelivery) -> None:
    message = parts.send(world)
    parts.consumed(world, "r", QUEUE, "x3", message)
    world.did("x5", lines.AssignValue("r", "x5", (QUEUE,)))
    parts.consumed(world, "r", QUEUE, "x5", message)


def delivered_to_two_owners(world: ExactDelivery) -> None:
    message = parts.send(world)
    for name in ("x3", "x5"):
        world.did(name, lines.AssignValue("r", name, (QUEUE,)))
    for name in ("x3", "x5"):
        parts.consumed(world, "r", QUEUE, name, message)
    world.did("x3", lines.AssignValue("r", "x3", (), left=True))


def kept_by_its_consumer(world: ExactDelivery) -> None:
    """No broker accepts the third return, so the consumer retries the message at its last place."""
    message = parts.send(world)
    redelivery.fail(world, message, 3)
    last = replace(message, times=3, offset=10_002)
    parts.consumed(world, "r", "%RETRY%r/b/0", "x3", last)


def kept_by_its_consumer_in_two_copies(world: ExactDelivery) -> None:
    """A broker crash duplicated a returned message; the consumer has both copies."""
    message = parts.send(world)
    redelivery.fail(world, message, 2)
    world.fault("kill")
    copies = [replace(message, times=2, offset=30_000 + number) for number in range(2)]
    for copy in copies:
        value = lines.ConsumeValue("r", "%RETRY%r/b/0", "x3", (copy,))
        world.did("x3", value, value, lines.Type.FAIL)
    world.fault("start")
    for copy in copies:
        parts.consumed(world, "r", "%RETRY%r/b/0", "x3", replace(copy, times=3))


def counted_on_by_a_consumer_that_cannot_give_it_back(world: ExactDelivery) -> None:
    """Inject three failures. The consumer could send only one back, so the broker counts one."""
    message = parts.send(world)
    world.fault("kill")
    for times in range(3):
        value = lines.ConsumeValue("r", QUEUE, "x3", (replace(message, times=times),))
        world.did("x3", value, value, lines.Type.FAIL)
        world.wait(50)
    world.fault("start")
    parts.consumed(world, "r", "%RETRY%r/b/0", "x3", replace(message, times=1, offset=30_000))
    world.did("x4", lines.DrainValue("d", ("%DLQ%r",)))


def failed_where_the_queue_was_taken_away(world: ExactDelivery) -> None:
    _fail_where_the_queue_is_taken_away(world, kept_at_first=False)


def failed_where_the_second_assignment_took_the_queue_away(world: ExactDelivery) -> None:
    _fail_where_the_queue_is_taken_away(world, kept_at_first=True)


def _fail_where_the_queue_is_taken_away(world: ExactDelivery, *, kept_at_first: bool) -> None:
    """Another member had consumed it; a failure after the queue was reassigned does not count."""
    message = parts.send(world)
    redelivery.fail(world, message, 2)
    queue = "%RETRY%r/b/0"
    last = replace(message, times=2, offset=10_002)
    parts.consumed(world, "r", queue, "x3", last)
    world.fault("kill")
    world.fault("start")
    world.did("x5", lines.AssignValue("r", "x5", (queue,)))
    world.begin("x6", lines.ConsumeValue("r", queue, "x5", (last,)))
    if kept_at_first:
        world.did("x5", lines.AssignValue("r", "x5", (queue, QUEUE)))
    world.did("x5", lines.AssignValue("r", "x5", ()))
    world.end("x6", lines.ConsumeValue(), lines.Type.FAIL)
    world.did("x4", lines.DrainValue("d", ("%DLQ%r",)))


def delayed_while_its_broker_was_away(world: ExactDelivery) -> None:
    """A fault postpones the delivery of due messages."""
    message = redelivery.delayed(world, 10)
    world.fault("isolate")
    world.wait(100_000)
    world.fault("heal")
    parts.read(world, message, queue=f"{LATER}/b/0")


def delayed_and_lost_with_a_flush_that_timed_out(world: ExactDelivery) -> None:
    message = world.message(deliver_in_ms=10)
    world.did("x1", lines.SendValue(LATER, (message,)), lines.SendValue(status="FLUSH_DISK_TIMEOUT"))
    world.fault("lose_power")
    world.fault("start")
    world.wait(100_000)
    parts.read(world, offset=0, queue=f"{LATER}/b/0")


def delayed_twice_by_a_killed_broker(world: ExactDelivery) -> None:
    message = redelivery.delayed(world, 10)
    queue = f"{LATER}/b/0"
    world.wait(20)
    parts.read(world, message, queue=queue)
    world.fault("kill")
    world.fault("start")
    parts.read(world, parts.placed(message, len(world.queue(queue))), queue=queue)


def polled_again_after_a_seek(world: ExactDelivery) -> None:
    first = world.queue(QUEUE)[0]
    parts.read(world, *world.queue(QUEUE)[:3])
    answer = lines.PollValue(messages=(first,), next=1, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", lines.PollValue("group of x3", QUEUE, 0, seek=True), answer)


def filtered_by_its_tags(world: ExactDelivery) -> None:
    stored = world.queue(QUEUE)
    answer = lines.PollValue(
        messages=tuple(m for m in stored if m.tag == "A"), next=len(stored), min=0, max=len(stored)
    )
    world.did("x3", lines.PollValue("f", QUEUE, 0, seek=True), answer)


def committed_past_what_its_tags_do_not_select(world: ExactDelivery) -> None:
    parts.consumed(world, "f", QUEUE, "x4", parts.tagged(world, "A"))
    last = parts.tagged(world, "A")
    while last.tag == "A":
        parts.consumed(world, "f", QUEUE, "x4", last)
        last = parts.send(world)
        parts.read(world, last)
    world.did("x4", lines.CommitValue("f", QUEUE, last.offset + 1, "x4"))


def committed_by_two_at_a_time(world: ExactDelivery) -> None:
    """The broker may have received the lower offset last."""
    for name in ("x3", "x5"):
        world.did(name, lines.AssignValue("new", name, (QUEUE,)))
    for name, offset in (("x3", 5), ("x5", 4)):
        world.begin(name, lines.CommitValue("new", QUEUE, offset))
    for name in ("x3", "x5"):
        world.end(name, lines.CommitValue("new", QUEUE, 5))
    world.did("x3", lines.QueryValue("new", QUEUE), lines.QueryValue(offset=4))
    world.did("x3", lines.AssignValue("new", "x3", (), left=True))


def committed_less_by_the_next_owner(world: ExactDelivery) -> None:
    world.did("x3", lines.CommitValue("new", QUEUE, 5))
    world.did("x5", lines.AssignValue("new", "x5", (QUEUE,)))
    world.did("x5", lines.CommitValue("new", QUEUE, 3))


def committed_less_while_another_member_returns_the_queue(world: ExactDelivery) -> None:
    world.did("x5", lines.AssignValue("new", "x5", (QUEUE,)))
    world.did("x3", lines.AssignValue("new", "x3", (QUEUE,)))
    world.did("x3", lines.AssignValue("new", "x3", ()))
    world.did("x3", lines.CommitValue("new", QUEUE, 5))
    world.did("x5", lines.CommitValue("new", QUEUE, 3))


def taken_over(world: ExactDelivery, between: Callable[[], None] = lambda: None, first: int = 3) -> None:
    """The second member receives offset 3, `between` runs, and its listener is called from `first` on."""
    world.did("x5", lines.QueryValue("new", QUEUE, client="x5"), lines.QueryValue(offset=3))
    world.did("x5", lines.AssignValue("new", "x5", (QUEUE,)))
    between()
    parts.consumed(world, "new", QUEUE, "x5", *world.queue(QUEUE)[first:])


def taken_over_and_begun_lower_after_a_reset(world: ExactDelivery) -> None:
    def reset() -> None:
        world.did("x4", lines.CommitValue("new", QUEUE, 1, reset=True))

    taken_over(world, reset, 1)


def taken_over_and_begun_lower_after_a_restart(world: ExactDelivery) -> None:
    def restart() -> None:
        world.fault("kill")
        world.fault("start")

    taken_over(world, restart, 1)


def read_once_more_behind_what_is_done(world: ExactDelivery) -> None:
    """The progress of an orderly queue is its furthest call, not its last one."""
    first, second = (parts.send(world, parts.ORDERED) for _ in range(2))
    parts.consumed(world, "o", parts.ORDERED, "o0", first, second)
    world.fault("kill")
    world.fault("start")
    parts.consumed(world, "o", parts.ORDERED, "o0", first)
    world.wait(120_000)
    world.did("x4", lines.BoundsValue(QUEUE), lines.BoundsValue(min=0, max=len(world.queue(QUEUE))))


def reset_on_purpose(world: ExactDelivery) -> None:
    world.did("x3", lines.CommitValue("new", QUEUE, 5))
    world.did("x4", lines.CommitValue("new", QUEUE, 2, reset=True))
    world.did("x3", lines.QueryValue("new", QUEUE), lines.QueryValue(offset=2))


def forgotten_by_a_killed_broker(world: ExactDelivery) -> None:
    world.did("x3", lines.CommitValue("new", QUEUE, 5))
    world.fault("kill")
    world.fault("start")
    world.did("x3", lines.QueryValue("new", QUEUE), lines.QueryValue(offset=3))


def two_owners_for_a_moment(world: ExactDelivery) -> None:
    for name in ("x3", "x5"):
        world.did(name, lines.AssignValue("new", name, (QUEUE,)))
    world.did("x3", lines.AssignValue("new", "x3", (), left=True))


def overlapping_after_a_restart(world: ExactDelivery) -> None:
    first, second = (parts.send(world, parts.ORDERED) for _ in range(2))
    world.begin("o0", lines.ConsumeValue("o", parts.ORDERED, "o0", (first,)))
    world.fault("kill")
    world.fault("start")
    parts.consumed(world, "o", parts.ORDERED, "x5", second)
    world.end("o0", lines.ConsumeValue("o", parts.ORDERED))


def overlapping_on_a_lock_that_its_broker_forgot(world: ExactDelivery) -> None:
    """Inject two overlapping calls. The first began after the broker had restarted and lost all locks."""
    first, second = (parts.send(world, parts.ORDERED) for _ in range(2))
    world.fault("kill")
    world.fault("start")
    world.wait(20_000)
    world.begin("o0", lines.ConsumeValue("o", parts.ORDERED, "o0", (first,)))
    parts.consumed(world, "o", parts.ORDERED, "x5", second)
    world.end("o0", lines.ConsumeValue("o", parts.ORDERED))


def popped_again_when_visible(world: ExactDelivery) -> None:
    answer = lines.PopValue(messages=(world.queue(QUEUE)[-1],))
    for _ in range(2):
        world.did("x3", lines.PopValue("new", QUEUE, invisible_ms=10), answer)
        world.wait(100)


def not_visible_yet(world: ExactDelivery) -> None:
    last = parts.send(world)
    parts.read(world, offset=last.offset, end=last.offset)
    parts.read(world, last, process="x5")


def expired_in_front(world: ExactDelivery) -> None:
    INJECTED["message-lost"].inject(world)
    end = len(world.queue(QUEUE))
    world.did("x4", lines.BoundsValue(QUEUE), lines.BoundsValue(min=end, max=end))


def deleted_on_purpose(world: ExactDelivery) -> None:
    world.did("x4", lines.TopicValue("T"))
    INJECTED["topic-forgotten"].inject(world)


def unserved_while_down(world: ExactDelivery) -> None:
    world.wait(10_000)
    world.fault("kill")
    value = lines.SendValue("T", (world.message(),))
    world.did("x1", value, lines.SendValue(), lines.Type.FAIL, "SYSTEM_BUSY")
    world.fault("start")


EXPLAINED = (
    lost_with_the_machine,
    lost_with_the_master,
    cut_off_by_a_power_loss,
    no_client_waits_for_a_lost_tail,
    freed_and_given_again,
    an_offset_id_of_a_freed_place,
    another_tag_at_a_freed_place,
    given_again_after_a_flush_that_timed_out,
    batch_sent_twice,
    batch_cut_by_a_crash,
    sent_twice,
    delivered_again_after_a_rebalance,
    delivered_to_two_owners,
    kept_by_its_consumer,
    kept_by_its_consumer_in_two_copies,
    counted_on_by_a_consumer_that_cannot_give_it_back,
    failed_where_the_queue_was_taken_away,
    failed_where_the_second_assignment_took_the_queue_away,
    delayed_while_its_broker_was_away,
    delayed_and_lost_with_a_flush_that_timed_out,
    delayed_twice_by_a_killed_broker,
    polled_again_after_a_seek,
    filtered_by_its_tags,
    committed_past_what_its_tags_do_not_select,
    committed_by_two_at_a_time,
    committed_less_by_the_next_owner,
    committed_less_while_another_member_returns_the_queue,
    taken_over,
    taken_over_and_begun_lower_after_a_reset,
    taken_over_and_begun_lower_after_a_restart,
    read_once_more_behind_what_is_done,
    reset_on_purpose,
    forgotten_by_a_killed_broker,
    two_owners_for_a_moment,
    overlapping_after_a_restart,
    overlapping_on_a_lock_that_its_broker_forgot,
    popped_again_when_visible,
    not_visible_yet,
    expired_in_front,
    deleted_on_purpose,
    unserved_while_down,
)


@pytest.mark.parametrize("explained", EXPLAINED, ids=lambda each: each.__name__)
def test_an_event_with_a_known_cause_is_no_anomaly(explained: Callable[[ExactDelivery], None]) -> None:
    world = clean(5)
    explained(world)
    assert noticed(world) - {"A02"} == set()


# Without a bound, no delay is too long.


@pytest.mark.parametrize(
    ("bound", "name", "rule"),
    [
        ("lag_max_ms", "poll-far-behind", "A15"),
        ("rebalance_within_ms", "two-owners", "C09"),
        ("stall_within_ms", "orderly-queue-stands-still", "C10.2"),
        ("deliver_within_ms", "delayed-too-late", "C12"),
        ("serve_within_ms", "does-not-serve", "C21"),
        ("visible_within_ms", "not-visible-in-time", "A14"),
    ],
)
def test_a_rule_without_a_bound_is_not_judged(bound: str, name: str, rule: str) -> None:
    world = clean(2)
    setup(world, **{bound: None})
    INJECTED[name].inject(world)
    assert noticed(world) == set()
    assert getattr(SETUP, bound) is not None
    assert findings(world.lines)[rule].verdict is not Verdict.VIOLATED


def test_empty_polls_count_if_messages_are_visible_immediately() -> None:
    world = clean(4)
    setup(world, visible_within_ms=0)
    last = parts.send(world)
    parts.read(world, offset=last.offset, end=last.offset)
    parts.read(world, last)
    assert "L01" in noticed(world)


def test_a_send_without_an_answer_is_neither_lost_nor_a_phantom() -> None:
    """If delivered, it counts as recovered (A05); otherwise it does not count."""
    world = clean(6)
    before = findings(world.lines)
    stored, gone = parts.unknown(world), parts.unknown(world)
    parts.read(world, parts.placed(stored, len(world.queue(QUEUE))))
    found = findings(world.lines)
    assert noticed(world) == set()
    assert gone.id not in record(world.lines).seen
    assert found["A04"].counts["recovered"] == before["A04"].counts["recovered"] + 1


def test_few_witnesses_are_kept_and_all_violations_are_counted() -> None:
    world = clean(1)
    for number in range(40):
        parts.read(world, lines.Delivered(f"ghost{number}", len(world.queue(QUEUE)) + 100 + number))
    found = findings(world.lines)["A04"]
    assert found.counts["wrong"] == 40
    assert len(found.witnesses) == 16
    assert "ghost0, which was never sent" in found.witnesses[0].text
