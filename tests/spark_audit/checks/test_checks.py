"""Each check, on logs of a dozen rows.

Goal: every rule fires on the story made for it, and stays silent, or names the cause, on the legal twin of
that story. Method: each story has nodes, topics, groups and ids of its own, so that all of them are one log,
gathered once; findings are compared as whole sets, so an extra finding fails too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from mqproof.spark_audit.passes.profile import BROKER_KINDS
from tests.spark_audit.conftest import STEP_US, Story, evidence_in

PLAIN = Options()
Finding = tuple[Any, ...]
"""Rule, cause, and what a claim looks at."""


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """What a check finds in a story."""

    story: Story
    invariant: str
    due: set[Finding]
    columns: tuple[str, ...] = ("msg_id", "group")
    options: Options = PLAIN


Claims = Iterator[Claim]
TOLD: dict[str, tuple[Claim, ...]] = {}
"""Name to claims, in the order of this file."""


def told(claims: Callable[[], Claims]) -> Callable[[], Claims]:
    TOLD[claims.__name__] = tuple(claims())
    return claims


NAMES = ("node", "broker", "topic", "msg_id", "group")


def _own(row: dict[str, Any], number: int) -> dict[str, Any]:
    """The row, of a broker that is named, with names that no other story has; but what is delayed waits in
    the same topic everywhere."""
    attrs = {"broker": "broker", **row["attrs"]}
    return {
        **row,
        **{name: f"{row[name]}@{number}" for name in NAMES if row.get(name) not in (None, SCHEDULE_TOPIC)},
        "attrs": attrs | {name: f"{attrs[name]}@{number}" for name in NAMES if name in attrs},
    }


def _found(spark: SparkSession, claims: Sequence[Claim], options: Options) -> dict[Claim, list[Finding]]:
    """What each claim's check finds in its story, from one log of all of them."""
    rows = [_own(row, number) for number, claim in enumerate(claims) for row in claim.story.rows]
    brokers = tuple(sorted({row["node"] for row in rows if row["kind"] in BROKER_KINDS}))
    orderly = tuple(f"{group}@{number}" for number in range(len(claims)) for group in options.orderly)
    evidence = evidence_in(spark, rows, brokers, replace(options, orderly=orderly))
    found: dict[Claim, list[Finding]] = {claim: [] for claim in claims}
    for invariant in {claim.invariant: None for claim in claims}:
        for row in CHECKS[invariant].findings(evidence).collect():
            claim = claims[int((row.msg_id or row.group).partition("@")[2])]
            if claim.invariant == invariant:
                shown = (row[name] for name in ("rule", "cause", *claim.columns))
                found[claim].append(
                    tuple(each.partition("@")[0] if isinstance(each, str) else each for each in shown)
                )
    return found


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[Claim, list[Finding]]:
    by_options: defaultdict[Options, list[Claim]] = defaultdict(list)
    for claims in TOLD.values():
        for claim in claims:
            by_options[claim.options].append(claim)
    return {
        claim: findings
        for options, claims in by_options.items()
        for claim, findings in _found(spark, claims, options).items()
    }


@told
def a_sync_acked_message_cut_off_by_recovery_breaks_flush_1() -> Claims:
    story = Story().stored("m_kept", 0).stored("m_gone", 1).crash(kept_end=100)
    yield Claim(story, "FLUSH-1", {("acked-then-truncated", None, "m_gone", None)})


def delayed(story: Story, msg_id: str, offset: int) -> Story:
    """Waits behind as many as that; its producer is told where."""
    at = {"msg_id": msg_id, "queue_id": 0, "queue_offset": offset}
    story.send(msg_id).add("append", "broker", topic="SCHEDULE_TOPIC_XXXX", commit_offset=0, **at)
    return story.add("send_ack", "producer", topic="t", status="SEND_OK", **at)


@told
def a_delayed_message_is_not_where_its_producer_was_told_and_is_missed_when_it_was_put() -> Claims:
    for topic in ("t", "A_TOPIC"):
        story = delayed(delayed(Story(), "m_waits", 1), "m_put", 2)
        for offset in range(6):
            msg_id = "m_put" if offset == 4 else f"m_{offset}"
            if msg_id == "m_put":
                story.append(msg_id, offset)
            else:
                story.stored(msg_id, offset).deliver(msg_id, offset)
        rows = [row | {"topic": topic} if row.get("topic") == "t" else row for row in story.rows]
        told = Story()
        told.rows = rows
        due = {("lost-write", None, "m_put", "g"), ("lost-write", "unseen", "m_waits", "g")}
        yield Claim(told, "DELIV-1", due)


@told
def an_async_acked_message_cut_off_is_outside_the_guarantee() -> Claims:
    story = Story(flush="ASYNC_FLUSH").stored("m_gone", 0).crash(kept_end=0)
    yield Claim(story, "FLUSH-1", {("acked-then-truncated", "async_flush", "m_gone", None)})


@told
def without_a_stated_flush_mode_nothing_is_claimed_unless_the_user_states_it() -> Claims:
    story = Story(flush=None).stored("m_gone", 0).crash(kept_end=0)
    yield Claim(story, "FLUSH-1", {("acked-then-truncated", "flush_mode_unknown", "m_gone", None)})
    yield Claim(
        story,
        "FLUSH-1",
        {("acked-then-truncated", None, "m_gone", None)},
        options=Options(flush="SYNC_FLUSH"),
    )


@told
def what_was_never_acked_or_has_a_surviving_copy_may_be_cut_off() -> Claims:
    story = Story().send("m_unacked").append("m_unacked", 0).crash(kept_end=0)
    story.send("m_again").append("m_again", 0, commit_offset=0).ack("m_again", 0).crash(kept_end=0)
    story.send("m_again", attempt=2).append("m_again", 0, commit_offset=0).ack("m_again", 0)
    yield Claim(story, "FLUSH-1", set())


@told
def a_later_recovery_cuts_what_an_earlier_one_kept() -> Claims:
    story = Story().stored("m_gone", 0).crash(kept_end=100).crash(kept_end=0)
    story.stored("m_after", 0)
    yield Claim(story, "FLUSH-1", {("acked-then-truncated", None, "m_gone", None)})


@told
def an_acked_message_that_a_group_passed_over_is_lost_for_that_group() -> Claims:
    story = Story().stored("m_0", 0).stored("m_lost", 1).stored("m_2", 2)
    for group, offsets in (("g", (0, 2)), ("h", (0, 1, 2))):
        for offset in offsets:
            story.deliver({0: "m_0", 1: "m_lost", 2: "m_2"}[offset], offset, group, node=f"consumer-{group}")
    yield Claim(story, "DELIV-1", {("lost-write", None, "m_lost", "g")})


@told
def what_lies_beyond_the_last_delivery_is_in_flight() -> Claims:
    story = Story().stored("m_0", 0).stored("m_in_flight", 1).deliver("m_0", 0)
    yield Claim(story, "DELIV-1", {("lost-write", "unseen", "m_in_flight", "g")})


@told
def what_was_sent_before_a_group_began_is_not_lost() -> Claims:
    story = (
        Story().stored("m_before", 0).stored("m_1", 1).deliver("m_1", 1).stored("m_2", 2).deliver("m_2", 2)
    )
    yield Claim(story, "DELIV-1", {("lost-write", "unseen", "m_before", "g")})


@told
def a_message_is_delivered_when_any_of_its_copies_is() -> Claims:
    story = Story().send("m_retried").append("m_retried", 0).send("m_retried", attempt=2)
    story.append("m_retried", 1).ack("m_retried", 1).stored("m_2", 2).deliver("m_retried", 0).deliver(
        "m_2", 2
    )
    yield Claim(story, "DELIV-1", set())


@told
def what_a_reset_jumped_over_was_skipped_on_purpose() -> Claims:
    story = Story().stored("m_0", 0).deliver("m_0", 0).stored("m_skipped", 1).stored("m_2", 2)
    story.commit(2, reset="true", previous="1").deliver("m_2", 2)
    yield Claim(story, "DELIV-1", {("lost-write", "offset_reset", "m_skipped", "g")})


@told
def an_acked_message_cut_off_is_lost_though_nobody_reads_the_topic() -> Claims:
    story = Story().stored("m_gone", 0).crash(kept_end=0)
    yield Claim(story, "DELIV-1", {("acked-then-truncated", None, "m_gone", None)})


@told
def a_delivery_that_nobody_sent_is_a_phantom() -> Claims:
    story = Story().stored("m_0", 0).deliver("m_0", 0).append("m_never_sent", 1).deliver("m_never_sent", 1)
    yield Claim(story, "DELIV-2", {("phantom", None, "m_never_sent", None)})


@told
def an_unknown_outcome_that_is_delivered_is_recovered_not_a_phantom() -> Claims:
    story = Story().send("m_unknown").add("send_fail", "producer", msg_id="m_unknown", status="unknown")
    story.append("m_unknown", 0).deliver("m_unknown", 0)
    yield Claim(story, "DELIV-2", {("phantom", "recovered", "m_unknown", None)})


@told
def a_repeated_delivery_without_a_cause_is_found_once() -> Claims:
    story = Story().stored("m_twice", 0).deliver("m_twice", 0).deliver("m_twice", 0).deliver("m_twice", 0)
    yield Claim(story, "DELIV-3", {("duplicate-delivery", None, "m_twice", "g")})


@told
def two_groups_are_no_duplicate() -> Claims:
    story = Story().stored("m_0", 0).deliver("m_0", 0, "g").deliver("m_0", 0, "h")
    yield Claim(story, "DELIV-3", set())


@told
def a_repeated_delivery_is_explained_by_what_happened_in_between() -> Claims:
    reset = {"topic": "t", "queue_id": 0, "queue_offset": 0, "attrs": {"reset": "true"}}
    causes: dict[str, tuple[str, str, dict[str, Any]]] = {
        "rebalance": ("rebalance", "consumer-2", {"group": "g"}),
        "consumer_restart": ("crash", "harness", {"attrs": {"node": "consumer"}}),
        "broker_crash": ("crash", "broker", {}),
        "redelivery": ("consume_fail", "consumer", {"group": "g", "msg_id": "m_redelivery"}),
        "offset_reset": ("offset_commit", "broker", {"group": "g", **reset}),
    }
    story = Story()
    for offset, (cause, (kind, node, fields)) in enumerate(causes.items()):
        msg_id = f"m_{cause}"
        story.stored(msg_id, offset).deliver(msg_id, offset).add(kind, node, **fields).deliver(msg_id, offset)
    yield Claim(story, "DELIV-3", {("duplicate-delivery", cause, f"m_{cause}", "g") for cause in causes})


@told
def while_a_group_settles_two_members_may_be_handed_one_message() -> Claims:
    settled_us = Options().rebalance_us + Options().skew_us
    for second, after_us, cause in (
        ("other", -settled_us, "rebalance"),
        ("other", -settled_us - 1, None),
        ("other", STEP_US + settled_us, "rebalance"),
        ("other", STEP_US + settled_us + 1, None),
        ("consumer", -settled_us, None),
        ("consumer", STEP_US + settled_us, None),
    ):
        story = Story().stored("m_twice", 0).deliver("m_twice", 0)
        rebalanced_us = story.rows[-1]["ts"] + after_us
        story.deliver("m_twice", 0, node=second).add("rebalance", "other", group="g")
        story.rows[-1]["ts"] = rebalanced_us
        yield Claim(story, "DELIV-3", {("duplicate-delivery", cause, "m_twice", "g")})


@told
def another_groups_rebalance_explains_nothing() -> Claims:
    story = Story().stored("m_twice", 0).deliver("m_twice", 0).add("rebalance", "consumer", group="h")
    story.deliver("m_twice", 0)
    yield Claim(story, "DELIV-3", {("duplicate-delivery", None, "m_twice", "g")})


@told
def two_copies_need_two_attempts() -> Claims:
    story = (
        Story().send("m_retried").append("m_retried", 0).send("m_retried", attempt=2).append("m_retried", 1)
    )
    story.ack("m_retried", 1).send("m_doubled").append("m_doubled", 2).append("m_doubled", 3).ack(
        "m_doubled", 3
    )
    for msg_id, offset in (("m_retried", 0), ("m_retried", 1), ("m_doubled", 2), ("m_doubled", 3)):
        story.deliver(msg_id, offset)
    yield Claim(
        story,
        "DELIV-3",
        {
            ("duplicate-offset", "producer_retry", "m_retried", "g"),
            ("duplicate-offset", None, "m_doubled", "g"),
        },
    )


@told
def a_delayed_message_may_come_twice_where_its_broker_put_it_again_unsure() -> Claims:
    for retry in ({"msg_id": "m_late"}, {"msg_id": "m_other"}, {"msg_id": "m_late", "group": "g"}):
        delayed = {"topic": SCHEDULE_TOPIC, "queue_id": 0, "queue_offset": 0, "commit_offset": 0}
        story = Story().send("m_late").add("append", "broker", msg_id="m_late", **delayed)
        story.stored("m_meanwhile", 7).add("retry", "broker", topic="t", queue_id=0, **retry)
        for offset in (0, 1):
            story.append("m_late", offset).deliver("m_late", offset)
        cause = "broker_retry" if retry == {"msg_id": "m_late"} else None
        yield Claim(story, "DELIV-3", {("duplicate-offset", cause, "m_late", "g")})


@told
def going_back_in_a_queue_is_found_at_the_late_message_only() -> Claims:
    story = Story().deliver("m_0", 0).deliver("m_2", 2).deliver("m_late", 1).deliver("m_3", 3)
    yield Claim(story, "DELIV-4", {("nonmonotonic-poll", None, "m_late", "g")})


@told
def going_back_after_a_rebalance_is_legal() -> Claims:
    story = (
        Story().deliver("m_0", 0).deliver("m_1", 1).add("rebalance", "consumer", group="g").deliver("m_0", 0)
    )
    story.deliver("m_1", 1)
    yield Claim(story, "DELIV-4", {("nonmonotonic-poll", "rebalance", "m_0", "g")})


@told
def going_back_to_what_failed_is_legal_until_it_is_sent_back_or_done() -> Claims:
    story, place = Story(), {"group": "g", "topic": "t", "queue_id": 0}
    ends = (("consume_fail",), ("consume_fail", "retry"), ("consume_fail", "consume_ok"))
    for offset, kinds in enumerate(ends):
        msg_id = f"m_{kinds[-1]}"
        story.deliver(msg_id, offset)
        for kind in kinds:
            story.add(kind, "consumer", msg_id=msg_id, queue_offset=offset, **place)
    story.deliver("m_3", 3)
    for offset, kinds in reversed([*enumerate(ends)]):
        story.deliver(f"m_{kinds[-1]}", offset)
    # One that was sent back after all, and kept as well: its copies end each for itself.
    story.deliver("m_twice", 4).add("consume_fail", "consumer", msg_id="m_twice", queue_offset=4, **place)
    story.deliver("m_twice", 5)
    for kind in ("consume_fail", "retry"):
        story.add(kind, "consumer", msg_id="m_twice", queue_offset=5, **place)
    story.deliver("m_twice", 4)
    kept = {("nonmonotonic-poll", "redelivery", msg_id, "g") for msg_id in ("m_consume_fail", "m_twice")}
    again = {("nonmonotonic-poll", None, f"m_{end}", "g") for end in ("retry", "consume_ok")}
    yield Claim(story, "DELIV-4", kept | again)


@told
def jumping_over_what_another_group_was_handed_is_a_skip() -> Claims:
    story = Story().deliver("m_0", 0).deliver("m_2", 2)
    story.deliver("m_1", 1, group="h", node="consumer-h")
    yield Claim(story, "DELIV-4", {("poll-skip", None, "m_1", "g")})


@told
def jumping_over_an_offset_that_nobody_was_handed_is_no_skip() -> Claims:
    yield Claim(Story().deliver("m_0", 0).deliver("m_2", 2), "DELIV-4", set())


@told
def queues_of_two_brokers_are_not_mixed_up() -> Claims:
    story = Story().add("recover", "broker-2", commit_offset=0)
    for broker, offset in (("broker", 5), ("broker-2", 1), ("broker", 6), ("broker-2", 2)):
        story.deliver(f"m_{broker}_{offset}", offset)
        story.rows[-1]["attrs"] = {"broker": broker}
    yield Claim(story, "DELIV-4", set())


@told
def a_committed_offset_that_goes_back_is_found() -> Claims:
    story = Story().commit(3).commit(7).commit(5).commit(9)
    yield Claim(story, "DELIV-5", {("offset-regression", None, 5, "g")}, columns=("queue_offset", "group"))


@told
def a_reset_or_a_crash_may_set_a_committed_offset_back() -> Claims:
    reset = Story().commit(7).commit(5, reset="true")
    yield Claim(reset, "DELIV-5", {("offset-regression", "offset_reset", 5)}, columns=("queue_offset",))
    crash = Story().commit(7).crash(kept_end=0).commit(5)
    yield Claim(crash, "DELIV-5", {("offset-regression", "broker_crash", 5)}, columns=("queue_offset",))


@told
def a_regression_told_by_broker_and_client_is_one_finding() -> Claims:
    story = Story()
    for offset in (7, 5):
        story.commit(offset).add(
            "offset_commit",
            "consumer",
            topic="t",
            queue_id=0,
            queue_offset=offset,
            group="g",
            client="consumer",
        )
    yield Claim(story, "DELIV-5", {("offset-regression", None, 5)}, columns=("queue_offset",))


@told
def calls_of_a_queue_overlap_only_where_clocks_cannot_explain_it() -> Claims:
    skew_us = 100_000
    ends_after_us = {"m_0": skew_us, "m_1": skew_us + 1}
    story = Story()
    for queue_id, (msg_id, length_us) in enumerate(ends_after_us.items()):
        begun_us = (
            story.rows[-1]["ts"] + 31_000_000
        )  # the broker has been there for longer than locks are trusted
        for kind, node, at_us in (
            ("deliver", "one", begun_us),
            ("deliver", "two", begun_us),
            ("consume_ok", "one", begun_us + length_us),
            ("consume_ok", "two", begun_us + length_us),
        ):
            story.add(kind, node, msg_id=msg_id, topic="t", queue_id=queue_id, queue_offset=0, group="g")
            story.rows[-1]["ts"] = at_us
    yield Claim(
        story,
        "DELIV-13",
        {("orderly-overlap", None, "m_1", "g")},
        options=Options(orderly=("g",)),
    )
    yield Claim(story, "DELIV-13", set())


@told
def a_broker_that_comes_back_may_give_away_what_a_member_trusts_to_have_for_thirty_seconds() -> Claims:
    for after_us, cause in ((30_000_000, "broker_crash"), (30_200_000, None)):
        story = Story().add("recover", "broker", commit_offset=0)
        begun_us = story.rows[-1]["ts"] + after_us
        for kind, node, at_us in (
            ("deliver", "one", begun_us),
            ("deliver", "two", begun_us + 1),
            ("consume_ok", "one", begun_us + 1_000_000),
            ("consume_ok", "two", begun_us + 1_000_000),
        ):
            story.add(kind, node, msg_id="m", topic="t", queue_id=0, queue_offset=0, group="g")
            story.rows[-1].update(ts=at_us, attrs={"broker": "broker"})
        yield Claim(
            story,
            "DELIV-13",
            {("orderly-overlap", cause, "m", "g")},
            options=Options(orderly=("g",)),
        )


@told
def what_one_member_consumed_another_may_fail_and_leave() -> Claims:
    for consumed in (True, False):
        story = Story()
        place: dict[str, Any] = {"topic": "t", "queue_id": 0, "group": "g", "attrs": {"broker": "broker"}}
        for kind, node in (
            ("deliver", "one"),
            ("consume_ok", "one"),
            ("deliver", "two"),
            ("consume_fail", "two"),
        ):
            if consumed or kind != "consume_ok":
                story.add(kind, node, msg_id="m", queue_offset=0, **place)
        story.add("offset_commit", "two", queue_offset=7, **place)
        yield Claim(story, "DELIV-7", set() if consumed else {("failed-and-dropped", None, "m", "g")})


@pytest.mark.parametrize("name", TOLD)
def test_each_check_finds_exactly_the_violations_of_its_log(
    found: dict[Claim, list[Finding]], name: str
) -> None:
    for claim in TOLD[name]:
        findings = found[claim]
        assert set(findings) == claim.due
        assert len(findings) == len(claim.due), f"a finding is reported twice: {findings}"


@pytest.mark.parametrize("nodes", [("broker", "broker-1"), ("broker-n0", "broker-n1")])
def test_a_message_with_a_copy_is_lost_to_a_group_that_passed_it(
    spark: SparkSession, nodes: tuple[str, ...]
) -> None:
    story = Story()
    for offset in range(3):
        told: dict[str, Any] = {"msg_id": f"m_{offset}", "topic": "t", "queue_id": 0, "queue_offset": offset}
        story.send(told["msg_id"])
        for node in nodes:
            story.add("append", node, commit_offset=offset * 100, **told)
        story.add("send_ack", nodes[0], status="SEND_OK", commit_offset=offset * 100, **told)
    # A broker tells of commits under its own name.
    story.add("offset_commit", nodes[1], topic="t", queue_id=0, queue_offset=1, group="g")
    for offset in (0, 2):
        story.deliver(f"m_{offset}", offset)
        story.rows[-1]["attrs"] = {"broker": "broker"}
    found = CHECKS["DELIV-1"].findings(evidence_in(spark, story.rows, (*nodes, "broker"))).collect()
    assert [(row["rule"], row["cause"], row["msg_id"]) for row in found] == [("lost-write", None, "m_1")]
    # Its copies are one place to those who read it.
    assert [(row["broker"], row["queue_id"], row["queue_offset"]) for row in found] == [("broker", 0, 1)]


@pytest.mark.parametrize(("kind", "is_proof"), [("process", True), ("os", False)])
def test_an_acknowledged_message_is_judged_by_the_flush_mode_of_its_own_broker(
    spark: SparkSession, kind: str, *, is_proof: bool
) -> None:
    """Another that had the message before, and told nobody, promises nothing: neither by how it flushes nor
    by how it died."""
    flush = {"asked": "SYNC_FLUSH", "answering": "ASYNC_FLUSH"}
    story = Story()
    for attempt, node in enumerate(flush, 1):
        story.add("recover", node, commit_offset=0, attrs={"flush_disk_type": flush[node]})
        story.send("m", attempt=attempt)
        place: dict[str, Any] = {"msg_id": "m", "topic": "t", "queue_id": 0, "queue_offset": attempt}
        story.add("append", node, commit_offset=0, **place)
    story.add("send_ack", "producer", status="SEND_OK", attrs={"broker": "answering"}, **place)
    for node, died in (("asked", "os"), ("answering", kind)):
        story.add("crash", "harness", attrs={"node": node, "kind": died})
        story.add("recover", node, commit_offset=0, attrs={"flush_disk_type": flush[node]})
    evidence = evidence_in(spark, story.rows, ("answering", "asked", "broker"))
    causes = {
        invariant: [row["cause"] for row in CHECKS[invariant].findings(evidence).collect()]
        for invariant in ("FLUSH-1", "FLUSH-2", "DELIV-1")
    }
    possible = None if is_proof else "system_crash_possible"
    assert causes == {"FLUSH-1": ["async_flush"], "FLUSH-2": [possible], "DELIV-1": ["async_flush"]}


def test_a_broker_with_a_common_name_prefix_is_not_a_slave(spark: SparkSession) -> None:
    story = Story()
    for offset, node in enumerate(("broker", "broker-1", "broker")):
        told: dict[str, Any] = {"msg_id": f"m_{offset}", "topic": "t", "queue_id": 0, "queue_offset": offset}
        story.send(told["msg_id"]).add("append", node, commit_offset=offset * 100, **told)
        story.add("send_ack", node, status="SEND_OK", commit_offset=offset * 100, **told)
    for offset in (0, 2):
        story.deliver(f"m_{offset}", offset)
        story.rows[-1]["attrs"] = {"broker": "broker"}
    found = CHECKS["DELIV-1"].findings(evidence_in(spark, story.rows, ("broker", "broker-1"))).collect()
    assert [(row["cause"], row["msg_id"]) for row in found] == [("unseen", "m_1")]


def test_an_offset_may_go_back_after_a_leader_change_of_its_broker_group(spark: SparkSession) -> None:
    told = {"topic": "t", "queue_id": 0, "group": "g", "client": "consumer", "attrs": {"broker": "broker"}}
    story = Story().add("offset_commit", "consumer", queue_offset=7, **told)
    story.add("become_leader", "broker-n1", term=2).add("offset_commit", "consumer", queue_offset=5, **told)
    found = CHECKS["DELIV-5"].findings(evidence_in(spark, story.rows, ("broker-n0", "broker-n1"))).collect()
    assert [(row["rule"], row["cause"]) for row in found] == [("offset-regression", "broker_crash")]
