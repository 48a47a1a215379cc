"""Each check, on logs of a dozen rows.

Goal: every rule fires on the story made for it, and stays silent, or names the cause, on the legal twin of
that story. Method: a Story per test; findings are compared as whole sets, so an extra finding fails too.
"""

from typing import Any

from spark_audit.evidence import Options
from tests.spark_audit.conftest import STEP_US, Judge, Story


def test_a_sync_acked_message_cut_off_by_recovery_breaks_flush_1(judge: Judge) -> None:
    story = Story().stored("m_kept", 0).stored("m_gone", 1).crash(kept_end=100)
    assert judge(story, "FLUSH-1") == {("acked-then-truncated", None, "m_gone", None)}


def test_an_async_acked_message_cut_off_is_outside_the_guarantee(judge: Judge) -> None:
    story = Story(flush="ASYNC_FLUSH").stored("m_gone", 0).crash(kept_end=0)
    assert judge(story, "FLUSH-1") == {("acked-then-truncated", "async_flush", "m_gone", None)}


def test_without_a_stated_flush_mode_nothing_is_claimed_unless_the_user_states_it(judge: Judge) -> None:
    story = Story(flush=None).stored("m_gone", 0).crash(kept_end=0)
    assert judge(story, "FLUSH-1") == {("acked-then-truncated", "flush_mode_unknown", "m_gone", None)}
    stated = judge(story, "FLUSH-1", options=Options(flush="SYNC_FLUSH"))
    assert stated == {("acked-then-truncated", None, "m_gone", None)}


def test_what_was_never_acked_or_has_a_surviving_copy_may_be_cut_off(judge: Judge) -> None:
    story = Story().send("m_unacked").append("m_unacked", 0).crash(kept_end=0)
    story.send("m_again").append("m_again", 0, commit_offset=0).ack("m_again", 0).crash(kept_end=0)
    story.send("m_again", attempt=2).append("m_again", 0, commit_offset=0).ack("m_again", 0)
    assert judge(story, "FLUSH-1") == set()


def test_a_later_recovery_cuts_what_an_earlier_one_kept(judge: Judge) -> None:
    story = Story().stored("m_gone", 0).crash(kept_end=100).crash(kept_end=0)
    story.stored("m_after", 0)
    assert judge(story, "FLUSH-1") == {("acked-then-truncated", None, "m_gone", None)}


def test_an_acked_message_that_a_group_passed_over_is_lost_for_that_group(judge: Judge) -> None:
    story = Story().stored("m_0", 0).stored("m_lost", 1).stored("m_2", 2)
    for group, offsets in (("g", (0, 2)), ("h", (0, 1, 2))):
        for offset in offsets:
            story.deliver({0: "m_0", 1: "m_lost", 2: "m_2"}[offset], offset, group, node=f"consumer-{group}")
    assert judge(story, "DELIV-1") == {("lost-write", None, "m_lost", "g")}


def test_what_lies_beyond_the_last_delivery_is_in_flight(judge: Judge) -> None:
    story = Story().stored("m_0", 0).stored("m_in_flight", 1).deliver("m_0", 0)
    assert judge(story, "DELIV-1") == {("lost-write", "unseen", "m_in_flight", "g")}


def test_what_was_sent_before_a_group_began_is_not_lost(judge: Judge) -> None:
    story = (
        Story().stored("m_before", 0).stored("m_1", 1).deliver("m_1", 1).stored("m_2", 2).deliver("m_2", 2)
    )
    assert judge(story, "DELIV-1") == {("lost-write", "unseen", "m_before", "g")}


def test_a_message_is_delivered_when_any_of_its_copies_is(judge: Judge) -> None:
    story = Story().send("m_retried").append("m_retried", 0).send("m_retried", attempt=2)
    story.append("m_retried", 1).ack("m_retried", 1).stored("m_2", 2).deliver("m_retried", 0).deliver(
        "m_2", 2
    )
    assert judge(story, "DELIV-1") == set()


def test_what_a_reset_jumped_over_was_skipped_on_purpose(judge: Judge) -> None:
    story = Story().stored("m_0", 0).deliver("m_0", 0).stored("m_skipped", 1).stored("m_2", 2)
    story.commit(2, reset="true", previous="1").deliver("m_2", 2)
    assert judge(story, "DELIV-1") == {("lost-write", "offset_reset", "m_skipped", "g")}


def test_an_acked_message_cut_off_is_lost_though_nobody_reads_the_topic(judge: Judge) -> None:
    story = Story().stored("m_gone", 0).crash(kept_end=0)
    assert judge(story, "DELIV-1") == {("acked-then-truncated", None, "m_gone", None)}


def test_a_delivery_that_nobody_sent_is_a_phantom(judge: Judge) -> None:
    story = Story().stored("m_0", 0).deliver("m_0", 0).append("m_never_sent", 1).deliver("m_never_sent", 1)
    assert judge(story, "DELIV-2") == {("phantom", None, "m_never_sent", None)}


def test_an_unknown_outcome_that_is_delivered_is_recovered_not_a_phantom(judge: Judge) -> None:
    story = Story().send("m_unknown").add("send_fail", "producer", msg_id="m_unknown", status="unknown")
    story.append("m_unknown", 0).deliver("m_unknown", 0)
    assert judge(story, "DELIV-2") == {("phantom", "recovered", "m_unknown", None)}


def test_a_repeated_delivery_without_a_cause_is_found_once(judge: Judge) -> None:
    story = Story().stored("m_twice", 0).deliver("m_twice", 0).deliver("m_twice", 0).deliver("m_twice", 0)
    assert judge(story, "DELIV-3") == {("duplicate-delivery", None, "m_twice", "g")}


def test_two_groups_are_no_duplicate(judge: Judge) -> None:
    story = Story().stored("m_0", 0).deliver("m_0", 0, "g").deliver("m_0", 0, "h")
    assert judge(story, "DELIV-3") == set()


def test_a_repeated_delivery_is_explained_by_what_happened_in_between(judge: Judge) -> None:
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
    assert judge(story, "DELIV-3") == {("duplicate-delivery", cause, f"m_{cause}", "g") for cause in causes}


def test_another_groups_rebalance_explains_nothing(judge: Judge) -> None:
    story = Story().stored("m_twice", 0).deliver("m_twice", 0).add("rebalance", "consumer", group="h")
    story.deliver("m_twice", 0)
    assert judge(story, "DELIV-3") == {("duplicate-delivery", None, "m_twice", "g")}


def test_two_copies_need_two_attempts(judge: Judge) -> None:
    story = (
        Story().send("m_retried").append("m_retried", 0).send("m_retried", attempt=2).append("m_retried", 1)
    )
    story.ack("m_retried", 1).send("m_doubled").append("m_doubled", 2).append("m_doubled", 3).ack(
        "m_doubled", 3
    )
    for msg_id, offset in (("m_retried", 0), ("m_retried", 1), ("m_doubled", 2), ("m_doubled", 3)):
        story.deliver(msg_id, offset)
    assert judge(story, "DELIV-3") == {
        ("duplicate-offset", "producer_retry", "m_retried", "g"),
        ("duplicate-offset", None, "m_doubled", "g"),
    }


def test_going_back_in_a_queue_is_found_at_the_late_message_only(judge: Judge) -> None:
    story = Story().deliver("m_0", 0).deliver("m_2", 2).deliver("m_late", 1).deliver("m_3", 3)
    assert judge(story, "DELIV-4") == {("nonmonotonic-poll", None, "m_late", "g")}


def test_going_back_after_a_rebalance_is_legal(judge: Judge) -> None:
    story = (
        Story().deliver("m_0", 0).deliver("m_1", 1).add("rebalance", "consumer", group="g").deliver("m_0", 0)
    )
    story.deliver("m_1", 1)
    assert judge(story, "DELIV-4") == {("nonmonotonic-poll", "rebalance", "m_0", "g")}


def test_jumping_over_what_another_group_was_handed_is_a_skip(judge: Judge) -> None:
    story = Story().deliver("m_0", 0).deliver("m_2", 2)
    story.deliver("m_1", 1, group="h", node="consumer-h")
    assert judge(story, "DELIV-4") == {("poll-skip", None, "m_1", "g")}


def test_jumping_over_an_offset_that_nobody_was_handed_is_no_skip(judge: Judge) -> None:
    assert judge(Story().deliver("m_0", 0).deliver("m_2", 2), "DELIV-4") == set()


def test_queues_of_two_brokers_are_not_mixed_up(judge: Judge) -> None:
    story = Story().add("recover", "broker-2", commit_offset=0)
    for broker, offset in (("broker", 5), ("broker-2", 1), ("broker", 6), ("broker-2", 2)):
        story.deliver(f"m_{broker}_{offset}", offset)
        story.rows[-1]["attrs"] = {"broker": broker}
    assert judge(story, "DELIV-4") == set()


def test_a_committed_offset_that_goes_back_is_found(judge: Judge) -> None:
    story = Story().commit(3).commit(7).commit(5).commit(9)
    assert judge(story, "DELIV-5", ("queue_offset", "group")) == {("offset-regression", None, 5, "g")}


def test_a_reset_or_a_crash_may_set_a_committed_offset_back(judge: Judge) -> None:
    reset = Story().commit(7).commit(5, reset="true")
    assert judge(reset, "DELIV-5", ("queue_offset",)) == {("offset-regression", "offset_reset", 5)}
    crash = Story().commit(7).crash(kept_end=0).commit(5)
    assert judge(crash, "DELIV-5", ("queue_offset",)) == {("offset-regression", "broker_crash", 5)}


def test_a_regression_told_by_broker_and_client_is_one_finding(judge: Judge) -> None:
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
    assert judge(story, "DELIV-5", ("queue_offset",)) == {("offset-regression", None, 5)}


def test_calls_of_a_queue_overlap_only_where_clocks_cannot_explain_it(judge: Judge) -> None:
    skew_us = 100_000
    ends_after_us = {"m_0": skew_us, "m_1": skew_us + 1}
    story = Story()
    for queue_id, (msg_id, length_us) in enumerate(ends_after_us.items()):
        begun_us = story.rows[-1]["ts"] + STEP_US
        for kind, node, at_us in (
            ("deliver", "one", begun_us),
            ("deliver", "two", begun_us),
            ("consume_ok", "one", begun_us + length_us),
            ("consume_ok", "two", begun_us + length_us),
        ):
            story.add(kind, node, msg_id=msg_id, topic="t", queue_id=queue_id, queue_offset=0, group="g")
            story.rows[-1]["ts"] = at_us
    assert judge(story, "DELIV-13", options=Options(orderly=("g",))) == {
        ("orderly-overlap", None, "m_1", "g"),
    }
    assert judge(story, "DELIV-13") == set()
