"""Runs each check on logs of a dozen rows.

Goal: every rule finds the violation in the log made for it. In the legal variant of that log, it finds
nothing, or it names the cause. Method: each log has its own nodes, topics, groups and ids, so that all logs
are joined to one log, whose evidence is gathered once. Findings are compared as whole sets, so that an
additional finding fails, too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC, TIMER_TOPIC, WAITING_TOPICS
from mqproof.spark_audit.passes.profile import BROKER_KINDS
from tests.spark_audit.conftest import STEP_US, LogBuilder, embedded_evidence

PLAIN = Options()
Finding = tuple[Any, ...]
"""Rule, cause, and the columns of the claim."""


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """The expected findings of a check in a log."""

    builder: LogBuilder
    invariant: str
    expected: set[Finding]
    columns: tuple[str, ...] = ("msg_id", "group")
    options: Options = PLAIN


Claims = Iterator[Claim]
CLAIMS: dict[str, tuple[Claim, ...]] = {}
"""Maps a name to its claims, in the order of this file."""


def registered(claims: Callable[[], Claims]) -> Callable[[], Claims]:
    CLAIMS[claims.__name__] = tuple(claims())
    return claims


NAMES = ("node", "broker", "topic", "msg_id", "group")


def _own(row: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the row with its broker and with names that no other log has.

    The topics of waiting messages keep their names.
    """
    attrs = {"broker": "broker", **row["attrs"]}
    return {
        **row,
        **{name: f"{row[name]}@{number}" for name in NAMES if row.get(name) not in (None, *WAITING_TOPICS)},
        "attrs": attrs | {name: f"{attrs[name]}@{number}" for name in NAMES if name in attrs},
    }


def _found(claims: Sequence[Claim], options: Options) -> dict[Claim, list[Finding]]:
    """Return for each claim what its check finds in its log. All logs are checked together, as one log."""
    rows = [_own(row, number) for number, claim in enumerate(claims) for row in claim.builder.rows]
    brokers = tuple(sorted({row["node"] for row in rows if row["kind"] in BROKER_KINDS}))
    orderly = tuple(f"{group}@{number}" for number in range(len(claims)) for group in options.orderly)
    found: dict[Claim, list[Finding]] = {claim: [] for claim in claims}
    invariants = {claim.invariant: None for claim in claims}
    all_found = _findings(rows, brokers, *invariants, options=replace(options, orderly=orderly))
    for invariant, findings in all_found.items():
        for row in findings:
            claim = claims[int((row.msg_id or row.group).partition("@")[2])]
            if claim.invariant == invariant:
                shown = (row[name] for name in ("rule", "cause", *claim.columns))
                found[claim].append(
                    tuple(each.partition("@")[0] if isinstance(each, str) else each for each in shown)
                )
    return found


def _findings(
    rows: Sequence[dict[str, Any]], brokers: tuple[str, ...], *invariants: str, options: Options = PLAIN
) -> dict[str, list[Any]]:
    """Return all findings of some checks in a log."""
    with embedded_evidence(rows, brokers, options) as evidence:
        return {name: list(CHECKS[name].findings(evidence).collect()) for name in invariants}


@pytest.fixture(scope="module")
def found() -> dict[Claim, list[Finding]]:
    by_options: defaultdict[Options, list[Claim]] = defaultdict(list)
    for claims in CLAIMS.values():
        for claim in claims:
            by_options[claim.options].append(claim)
    return {
        claim: findings
        for options, claims in by_options.items()
        for claim, findings in _found(claims, options).items()
    }


@registered
def a_sync_acked_message_cut_off_by_recovery_violates_flush_1() -> Claims:
    builder = LogBuilder().stored("m_kept", 0).stored("m_gone", 1).crash(kept_end=100)
    yield Claim(builder, "FLUSH-1", {("acked-then-truncated", None, "m_gone", None)})


def delayed(builder: LogBuilder, msg_id: str, offset: int, topic: str = SCHEDULE_TOPIC) -> LogBuilder:
    """Add a delayed message at an offset of the waiting topic, with an acknowledgement to its producer."""
    at = {"msg_id": msg_id, "queue_id": 0, "queue_offset": offset}
    builder.send(msg_id).add("append", "broker", topic=topic, commit_offset=0, **at)
    return builder.add("send_ack", "producer", topic="t", status="SEND_OK", **at)


@registered
def a_delayed_message_is_lost_only_if_it_was_appended_to_its_topic() -> Claims:
    for topic, waits in (("t", SCHEDULE_TOPIC), ("A_TOPIC", SCHEDULE_TOPIC), ("t", TIMER_TOPIC)):
        builder = delayed(delayed(LogBuilder(), "m_waits", 1, waits), "m_put", 2, waits)
        for offset in range(6):
            msg_id = "m_put" if offset == 4 else f"m_{offset}"
            if msg_id == "m_put":
                builder.append(msg_id, offset)
            else:
                builder.stored(msg_id, offset).deliver(msg_id, offset)
        rows = [row | {"topic": topic} if row.get("topic") == "t" else row for row in builder.rows]
        of_topic = LogBuilder()
        of_topic.rows = rows
        expected = {("lost-write", None, "m_put", "g"), ("lost-write", "unseen", "m_waits", "g")}
        yield Claim(of_topic, "DELIV-1", expected)


@registered
def an_async_acked_message_cut_off_is_outside_the_guarantee() -> Claims:
    builder = LogBuilder(flush="ASYNC_FLUSH").stored("m_gone", 0).crash(kept_end=0)
    yield Claim(builder, "FLUSH-1", {("acked-then-truncated", "async_flush", "m_gone", None)})


@registered
def without_a_stated_flush_mode_nothing_is_claimed_unless_the_user_states_it() -> Claims:
    builder = LogBuilder(flush=None).stored("m_gone", 0).crash(kept_end=0)
    yield Claim(builder, "FLUSH-1", {("acked-then-truncated", "flush_mode_unknown", "m_gone", None)})
    yield Claim(
        builder,
        "FLUSH-1",
        {("acked-then-truncated", None, "m_gone", None)},
        options=Options(flush="SYNC_FLUSH"),
    )


@registered
def an_unacked_or_stored_again_message_may_be_cut_off() -> Claims:
    builder = LogBuilder().send("m_unacked").append("m_unacked", 0).crash(kept_end=0)
    builder.send("m_again").append("m_again", 0, commit_offset=0).ack("m_again", 0).crash(kept_end=0)
    builder.send("m_again", attempt=2).append("m_again", 0, commit_offset=0).ack("m_again", 0)
    yield Claim(builder, "FLUSH-1", set())


@registered
def a_record_cut_off_by_a_later_recovery_is_found() -> Claims:
    builder = LogBuilder().stored("m_gone", 0).crash(kept_end=100).crash(kept_end=0)
    builder.stored("m_after", 0)
    yield Claim(builder, "FLUSH-1", {("acked-then-truncated", None, "m_gone", None)})


@registered
def an_acked_message_that_a_group_passed_over_is_lost_for_that_group() -> Claims:
    builder = LogBuilder().stored("m_0", 0).stored("m_lost", 1).stored("m_2", 2)
    for group, offsets in (("g", (0, 2)), ("h", (0, 1, 2))):
        for offset in offsets:
            builder.deliver(
                {0: "m_0", 1: "m_lost", 2: "m_2"}[offset], offset, group, node=f"consumer-{group}"
            )
    yield Claim(builder, "DELIV-1", {("lost-write", None, "m_lost", "g")})


@registered
def a_message_after_the_last_delivery_is_in_flight() -> Claims:
    builder = LogBuilder().stored("m_0", 0).stored("m_in_flight", 1).deliver("m_0", 0)
    yield Claim(builder, "DELIV-1", {("lost-write", "unseen", "m_in_flight", "g")})


@registered
def a_message_sent_before_a_group_started_is_not_lost() -> Claims:
    builder = (
        LogBuilder()
        .stored("m_before", 0)
        .stored("m_1", 1)
        .deliver("m_1", 1)
        .stored("m_2", 2)
        .deliver("m_2", 2)
    )
    yield Claim(builder, "DELIV-1", {("lost-write", "unseen", "m_before", "g")})


@registered
def a_message_is_delivered_if_one_of_its_copies_is() -> Claims:
    builder = LogBuilder().send("m_retried").append("m_retried", 0).send("m_retried", attempt=2)
    builder.append("m_retried", 1).ack("m_retried", 1).stored("m_2", 2).deliver("m_retried", 0).deliver(
        "m_2", 2
    )
    yield Claim(builder, "DELIV-1", set())


@registered
def a_message_skipped_by_a_reset_is_not_lost() -> Claims:
    builder = LogBuilder().stored("m_0", 0).deliver("m_0", 0).stored("m_skipped", 1).stored("m_2", 2)
    builder.commit(2, reset="true", previous="1").deliver("m_2", 2)
    yield Claim(builder, "DELIV-1", {("lost-write", "offset_reset", "m_skipped", "g")})


@registered
def a_truncated_acked_message_is_lost_even_without_a_reader() -> Claims:
    builder = LogBuilder().stored("m_gone", 0).crash(kept_end=0)
    yield Claim(builder, "DELIV-1", {("acked-then-truncated", None, "m_gone", None)})


@registered
def a_delivery_without_a_send_is_a_phantom() -> Claims:
    builder = (
        LogBuilder().stored("m_0", 0).deliver("m_0", 0).append("m_never_sent", 1).deliver("m_never_sent", 1)
    )
    yield Claim(builder, "DELIV-2", {("phantom", None, "m_never_sent", None)})


@registered
def a_delivery_after_an_unknown_outcome_is_not_a_phantom() -> Claims:
    builder = (
        LogBuilder().send("m_unknown").add("send_fail", "producer", msg_id="m_unknown", status="unknown")
    )
    builder.append("m_unknown", 0).deliver("m_unknown", 0)
    yield Claim(builder, "DELIV-2", {("phantom", "recovered", "m_unknown", None)})


@registered
def a_repeated_delivery_without_a_cause_is_found_once() -> Claims:
    builder = (
        LogBuilder().stored("m_twice", 0).deliver("m_twice", 0).deliver("m_twice", 0).deliver("m_twice", 0)
    )
    yield Claim(builder, "DELIV-3", {("duplicate-delivery", None, "m_twice", "g")})


@registered
def deliveries_to_two_groups_are_not_duplicates() -> Claims:
    builder = LogBuilder().stored("m_0", 0).deliver("m_0", 0, "g").deliver("m_0", 0, "h")
    yield Claim(builder, "DELIV-3", set())


@registered
def a_repeated_delivery_is_explained_by_an_event_in_between() -> Claims:
    reset = {"topic": "t", "queue_id": 0, "queue_offset": 0, "attrs": {"reset": "true"}}
    causes: dict[str, tuple[str, str, dict[str, Any]]] = {
        "rebalance": ("rebalance", "consumer-2", {"group": "g"}),
        "consumer_restart": ("crash", "harness", {"attrs": {"node": "consumer"}}),
        "broker_crash": ("crash", "broker", {}),
        "redelivery": ("consume_fail", "consumer", {"group": "g", "msg_id": "m_redelivery"}),
        "offset_reset": ("offset_commit", "broker", {"group": "g", **reset}),
    }
    builder = LogBuilder()
    for offset, (cause, (kind, node, fields)) in enumerate(causes.items()):
        msg_id = f"m_{cause}"
        builder.stored(msg_id, offset).deliver(msg_id, offset).add(kind, node, **fields).deliver(
            msg_id, offset
        )
    yield Claim(builder, "DELIV-3", {("duplicate-delivery", cause, f"m_{cause}", "g") for cause in causes})


@registered
def during_a_rebalance_two_members_may_receive_one_message() -> Claims:
    settled_us = Options().rebalance_us + Options().skew_us
    for second, after_us, cause in (
        ("other", -settled_us, "rebalance"),
        ("other", -settled_us - 1, None),
        ("other", STEP_US + settled_us, "rebalance"),
        ("other", STEP_US + settled_us + 1, None),
        ("consumer", -settled_us, None),
        ("consumer", STEP_US + settled_us, None),
    ):
        builder = LogBuilder().stored("m_twice", 0).deliver("m_twice", 0)
        rebalanced_us = builder.rows[-1]["ts"] + after_us
        builder.deliver("m_twice", 0, node=second).add("rebalance", "other", group="g")
        builder.rows[-1]["ts"] = rebalanced_us
        yield Claim(builder, "DELIV-3", {("duplicate-delivery", cause, "m_twice", "g")})


@registered
def the_rebalance_of_another_group_explains_nothing() -> Claims:
    builder = LogBuilder().stored("m_twice", 0).deliver("m_twice", 0).add("rebalance", "consumer", group="h")
    builder.deliver("m_twice", 0)
    yield Claim(builder, "DELIV-3", {("duplicate-delivery", None, "m_twice", "g")})


@registered
def two_copies_need_two_attempts() -> Claims:
    builder = (
        LogBuilder()
        .send("m_retried")
        .append("m_retried", 0)
        .send("m_retried", attempt=2)
        .append("m_retried", 1)
    )
    builder.ack("m_retried", 1).send("m_doubled").append("m_doubled", 2).append("m_doubled", 3).ack(
        "m_doubled", 3
    )
    for msg_id, offset in (("m_retried", 0), ("m_retried", 1), ("m_doubled", 2), ("m_doubled", 3)):
        builder.deliver(msg_id, offset)
    yield Claim(
        builder,
        "DELIV-3",
        {
            ("duplicate-offset", "producer_retry", "m_retried", "g"),
            ("duplicate-offset", None, "m_doubled", "g"),
        },
    )


@registered
def a_delayed_message_may_be_repeated_after_an_unknown_append_outcome() -> Claims:
    for retry in ({"msg_id": "m_late"}, {"msg_id": "m_other"}, {"msg_id": "m_late", "group": "g"}):
        delayed = {"topic": SCHEDULE_TOPIC, "queue_id": 0, "queue_offset": 0, "commit_offset": 0}
        builder = LogBuilder().send("m_late").add("append", "broker", msg_id="m_late", **delayed)
        builder.stored("m_meanwhile", 7).add("retry", "broker", topic="t", queue_id=0, **retry)
        for offset in (0, 1):
            builder.append("m_late", offset).deliver("m_late", offset)
        cause = "broker_retry" if retry == {"msg_id": "m_late"} else None
        yield Claim(builder, "DELIV-3", {("duplicate-offset", cause, "m_late", "g")})


@registered
def only_the_late_message_of_a_step_back_is_reported() -> Claims:
    builder = LogBuilder().deliver("m_0", 0).deliver("m_2", 2).deliver("m_late", 1).deliver("m_3", 3)
    yield Claim(builder, "DELIV-4", {("nonmonotonic-poll", None, "m_late", "g")})


@registered
def a_step_back_after_a_rebalance_is_legal() -> Claims:
    builder = (
        LogBuilder()
        .deliver("m_0", 0)
        .deliver("m_1", 1)
        .add("rebalance", "consumer", group="g")
        .deliver("m_0", 0)
    )
    builder.deliver("m_1", 1)
    yield Claim(builder, "DELIV-4", {("nonmonotonic-poll", "rebalance", "m_0", "g")})


@registered
def a_step_back_to_a_failed_message_is_legal_until_it_is_sent_back_or_consumed() -> Claims:
    builder, place = LogBuilder(), {"group": "g", "topic": "t", "queue_id": 0}
    ends = (("consume_fail",), ("consume_fail", "retry"), ("consume_fail", "consume_ok"))
    for offset, kinds in enumerate(ends):
        msg_id = f"m_{kinds[-1]}"
        builder.deliver(msg_id, offset)
        for kind in kinds:
            builder.add(kind, "consumer", msg_id=msg_id, queue_offset=offset, **place)
    builder.deliver("m_3", 3)
    for offset, kinds in reversed([*enumerate(ends)]):
        builder.deliver(f"m_{kinds[-1]}", offset)
    # A message that was both sent back and kept: each of its copies ends separately.
    builder.deliver("m_twice", 4).add("consume_fail", "consumer", msg_id="m_twice", queue_offset=4, **place)
    builder.deliver("m_twice", 5)
    for kind in ("consume_fail", "retry"):
        builder.add(kind, "consumer", msg_id="m_twice", queue_offset=5, **place)
    builder.deliver("m_twice", 4)
    kept = {("nonmonotonic-poll", "redelivery", msg_id, "g") for msg_id in ("m_consume_fail", "m_twice")}
    illegal = {("nonmonotonic-poll", None, f"m_{end}", "g") for end in ("retry", "consume_ok")}
    yield Claim(builder, "DELIV-4", kept | illegal)


@registered
def skipping_an_offset_that_another_group_received_is_a_violation() -> Claims:
    builder = LogBuilder().deliver("m_0", 0).deliver("m_2", 2)
    builder.deliver("m_1", 1, group="h", node="consumer-h")
    yield Claim(builder, "DELIV-4", {("poll-skip", None, "m_1", "g")})


@registered
def skipping_an_offset_that_no_group_received_is_legal() -> Claims:
    yield Claim(LogBuilder().deliver("m_0", 0).deliver("m_2", 2), "DELIV-4", set())


@registered
def queues_of_two_brokers_are_distinguished() -> Claims:
    builder = LogBuilder().add("recover", "broker-2", commit_offset=0)
    for broker, offset in (("broker", 5), ("broker-2", 1), ("broker", 6), ("broker-2", 2)):
        builder.deliver(f"m_{broker}_{offset}", offset)
        builder.rows[-1]["attrs"] = {"broker": broker}
    yield Claim(builder, "DELIV-4", set())


@registered
def a_committed_offset_that_goes_back_is_found() -> Claims:
    builder = LogBuilder().commit(3).commit(7).commit(5).commit(9)
    yield Claim(builder, "DELIV-5", {("offset-regression", None, 5, "g")}, columns=("queue_offset", "group"))


@registered
def a_reset_or_a_crash_may_set_a_committed_offset_back() -> Claims:
    reset = LogBuilder().commit(7).commit(5, reset="true")
    yield Claim(reset, "DELIV-5", {("offset-regression", "offset_reset", 5)}, columns=("queue_offset",))
    crash = LogBuilder().commit(7).crash(kept_end=0).commit(5)
    yield Claim(crash, "DELIV-5", {("offset-regression", "broker_crash", 5)}, columns=("queue_offset",))


@registered
def a_regression_reported_by_broker_and_client_is_one_finding() -> Claims:
    builder = LogBuilder()
    for offset in (7, 5):
        builder.commit(offset).add(
            "offset_commit",
            "consumer",
            topic="t",
            queue_id=0,
            queue_offset=offset,
            group="g",
            client="consumer",
        )
    yield Claim(builder, "DELIV-5", {("offset-regression", None, 5)}, columns=("queue_offset",))


@registered
def overlapping_calls_are_a_violation_only_beyond_the_clock_skew() -> Claims:
    skew_us = 100_000
    ends_after_us = {"m_0": skew_us, "m_1": skew_us + 1}
    builder = LogBuilder()
    for queue_id, (msg_id, length_us) in enumerate(ends_after_us.items()):
        begun_us = (
            builder.rows[-1]["ts"] + 31_000_000
        )  # the broker has been running for longer than a lock lasts
        for kind, node, at_us in (
            ("deliver", "one", begun_us),
            ("deliver", "two", begun_us),
            ("consume_ok", "one", begun_us + length_us),
            ("consume_ok", "two", begun_us + length_us),
        ):
            builder.add(kind, node, msg_id=msg_id, topic="t", queue_id=queue_id, queue_offset=0, group="g")
            builder.rows[-1]["ts"] = at_us
    yield Claim(
        builder,
        "DELIV-13",
        {("orderly-overlap", None, "m_1", "g")},
        options=Options(orderly=("g",)),
    )
    yield Claim(builder, "DELIV-13", set())


@registered
def after_a_broker_restart_a_lock_of_thirty_seconds_may_be_granted_twice() -> Claims:
    for after_us, cause in ((30_000_000, "broker_crash"), (30_200_000, None)):
        builder = LogBuilder().add("recover", "broker", commit_offset=0)
        begun_us = builder.rows[-1]["ts"] + after_us
        for kind, node, at_us in (
            ("deliver", "one", begun_us),
            ("deliver", "two", begun_us + 1),
            ("consume_ok", "one", begun_us + 1_000_000),
            ("consume_ok", "two", begun_us + 1_000_000),
        ):
            builder.add(kind, node, msg_id="m", topic="t", queue_id=0, queue_offset=0, group="g")
            builder.rows[-1].update(ts=at_us, attrs={"broker": "broker"})
        yield Claim(
            builder,
            "DELIV-13",
            {("orderly-overlap", cause, "m", "g")},
            options=Options(orderly=("g",)),
        )


@registered
def a_failed_message_may_be_dropped_if_another_member_consumed_it() -> Claims:
    for consumed in (True, False):
        builder = LogBuilder()
        place: dict[str, Any] = {"topic": "t", "queue_id": 0, "group": "g", "attrs": {"broker": "broker"}}
        for kind, node in (
            ("deliver", "one"),
            ("consume_ok", "one"),
            ("deliver", "two"),
            ("consume_fail", "two"),
        ):
            if consumed or kind != "consume_ok":
                builder.add(kind, node, msg_id="m", queue_offset=0, **place)
        builder.add("offset_commit", "two", queue_offset=7, **place)
        yield Claim(builder, "DELIV-7", set() if consumed else {("failed-and-dropped", None, "m", "g")})


def _half(*kinds: str) -> LogBuilder:
    """Build a log with a half message m and these events of its broker."""
    builder = LogBuilder().send("m").ack("m", 0)
    for kind in ("half", *kinds):
        builder.add(kind, "broker", msg_id="m", topic="t")
    return builder


@registered
def a_half_message_is_visible_at_one_place_unless_a_crash_may_have_lost_it() -> Claims:
    once = _half("commit").deliver("m", 0).deliver("m", 0, "h")
    yield Claim(once, "TXN-1", set())
    twice = _half("commit", "commit").deliver("m", 0).deliver("m", 1)
    yield Claim(twice, "TXN-1", {("visible-twice", None, "m", None)})
    again = _half("commit").deliver("m", 0).crash(0).deliver("m", 1)
    yield Claim(again, "TXN-1", {("visible-twice", "broker_crash", "m", None)})
    sent_twice = _half("half", "commit", "commit").deliver("m", 0).deliver("m", 1)
    yield Claim(sent_twice, "TXN-1", set())


@registered
def a_transaction_ends_in_one_way_unless_a_crash_may_have_lost_the_first() -> Claims:
    yield Claim(_half("commit", "commit"), "TXN-2", set())
    yield Claim(_half("rollback", "commit"), "TXN-2", {("ended-twice", None, "m", None)})
    again = _half("rollback").crash(0).add("commit", "broker", msg_id="m", topic="t")
    yield Claim(again, "TXN-2", {("ended-twice", "broker_crash", "m", None)})


@registered
def a_transaction_is_not_checked_after_its_end() -> Claims:
    yield Claim(_half("check", "check", "rollback"), "TXN-4", set())
    late = _half("check", "commit", "check")
    yield Claim(late, "TXN-4", {("checked-after-end", None, "m", None)})
    again = _half("rollback").crash(0).add("check", "broker", msg_id="m", topic="t")
    yield Claim(again, "TXN-4", {("checked-after-end", "broker_crash", "m", None)})


@registered
def a_recalled_message_is_not_delivered() -> Claims:
    for status, sends, expected in (
        ("PUT_OK", 1, {("recalled-read", None, "m", "g")}),
        ("FLUSH_DISK_TIMEOUT", 1, set()),
        ("PUT_OK", 2, set()),
    ):
        builder = LogBuilder()
        for attempt in range(1, sends + 1):
            builder.send("m", attempt)
        builder.add("recall", "broker", msg_id="m", topic="t", status=status)
        for _ in range(3):
            builder.commit(0)
        yield Claim(builder.deliver("m", 0), "TIMER-3", expected)


@pytest.mark.parametrize("name", CLAIMS)
def test_each_check_finds_exactly_the_violations_of_its_log(
    found: dict[Claim, list[Finding]], name: str
) -> None:
    for claim in CLAIMS[name]:
        findings = found[claim]
        assert set(findings) == claim.expected
        assert len(findings) == len(claim.expected), f"a finding is reported twice: {findings}"


@pytest.mark.parametrize("nodes", [("broker", "broker-1"), ("broker-n0", "broker-n1")])
def test_a_message_with_a_copy_is_lost_to_a_group_that_passed_it(nodes: tuple[str, ...]) -> None:
    builder = LogBuilder()
    for offset in range(3):
        fields: dict[str, Any] = {
            "msg_id": f"m_{offset}",
            "topic": "t",
            "queue_id": 0,
            "queue_offset": offset,
        }
        builder.send(fields["msg_id"])
        for node in nodes:
            builder.add("append", node, commit_offset=offset * 100, **fields)
        builder.add("send_ack", nodes[0], status="SEND_OK", commit_offset=offset * 100, **fields)
    # A broker reports commits under its own name.
    builder.add("offset_commit", nodes[1], topic="t", queue_id=0, queue_offset=1, group="g")
    for offset in (0, 2):
        builder.deliver(f"m_{offset}", offset)
        builder.rows[-1]["attrs"] = {"broker": "broker"}
    found = _findings(builder.rows, (*nodes, "broker"), "DELIV-1")["DELIV-1"]
    assert [(row["rule"], row["cause"], row["msg_id"]) for row in found] == [("lost-write", None, "m_1")]
    # For its consumers, the copies are one place.
    assert [(row["broker"], row["queue_id"], row["queue_offset"]) for row in found] == [("broker", 0, 1)]


@pytest.mark.parametrize(("kind", "is_proof"), [("process", True), ("os", False)])
def test_an_acknowledged_message_is_judged_by_the_flush_mode_of_its_own_broker(
    kind: str, *, is_proof: bool
) -> None:
    """Another broker stored the message before, without an acknowledgement.

    Neither its flush mode nor its kind of crash counts.
    """
    flush = {"asked": "SYNC_FLUSH", "answering": "ASYNC_FLUSH"}
    builder = LogBuilder()
    for attempt, node in enumerate(flush, 1):
        builder.add("recover", node, commit_offset=0, attrs={"flush_disk_type": flush[node]})
        builder.send("m", attempt=attempt)
        place: dict[str, Any] = {"msg_id": "m", "topic": "t", "queue_id": 0, "queue_offset": attempt}
        builder.add("append", node, commit_offset=0, **place)
    builder.add("send_ack", "producer", status="SEND_OK", attrs={"broker": "answering"}, **place)
    for node, died in (("asked", "os"), ("answering", kind)):
        builder.add("crash", "harness", attrs={"node": node, "kind": died})
        builder.add("recover", node, commit_offset=0, attrs={"flush_disk_type": flush[node]})
    found = _findings(builder.rows, ("answering", "asked", "broker"), "FLUSH-1", "FLUSH-2", "DELIV-1")
    causes = {invariant: [row["cause"] for row in rows] for invariant, rows in found.items()}
    possible = None if is_proof else "system_crash_possible"
    assert causes == {"FLUSH-1": ["async_flush"], "FLUSH-2": [possible], "DELIV-1": ["async_flush"]}


def test_a_broker_with_a_common_name_prefix_is_not_a_slave() -> None:
    builder = LogBuilder()
    for offset, node in enumerate(("broker", "broker-1", "broker")):
        fields: dict[str, Any] = {
            "msg_id": f"m_{offset}",
            "topic": "t",
            "queue_id": 0,
            "queue_offset": offset,
        }
        builder.send(fields["msg_id"]).add("append", node, commit_offset=offset * 100, **fields)
        builder.add("send_ack", node, status="SEND_OK", commit_offset=offset * 100, **fields)
    for offset in (0, 2):
        builder.deliver(f"m_{offset}", offset)
        builder.rows[-1]["attrs"] = {"broker": "broker"}
    found = _findings(builder.rows, ("broker", "broker-1"), "DELIV-1")["DELIV-1"]
    assert [(row["cause"], row["msg_id"]) for row in found] == [("unseen", "m_1")]


def test_an_offset_may_go_back_after_a_leader_change_of_its_broker_group() -> None:
    fields = {"topic": "t", "queue_id": 0, "group": "g", "client": "consumer", "attrs": {"broker": "broker"}}
    builder = LogBuilder().add("offset_commit", "consumer", queue_offset=7, **fields)
    builder.add("become_leader", "broker-n1", term=2).add(
        "offset_commit", "consumer", queue_offset=5, **fields
    )
    found = _findings(builder.rows, ("broker-n0", "broker-n1"), "DELIV-5")["DELIV-5"]
    assert [(row["rule"], row["cause"]) for row in found] == [("offset-regression", "broker_crash")]
