"""A verdict is not stronger than its evidence."""

from dataclasses import replace

from mqproof.report.model import Verdict
from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.judging.verdict import complete_since, judge
from mqproof.spark_audit.passes.profile import Overview

LOSS = CHECKS["DELIV-1"]

SEEN = {"acked": 5, "acked_and_delivered": 5, "groups": 1}
SINCE = "the log is complete only from some time on"


def test_violations_that_missing_rows_may_explain_are_unknown() -> None:
    lost: dict[tuple[str, str | None], int] = {("lost-write", None): 3}
    assert judge(LOSS, SEEN, lost, missing_rows=0)[0] is Verdict.VIOLATED
    assert judge(LOSS, SEEN, lost, missing_rows=2)[0] is Verdict.VIOLATED
    assert judge(LOSS, SEEN, lost, missing_rows=3)[0] is Verdict.UNKNOWN
    assert judge(LOSS, SEEN, {}, missing_rows=1)[0] is Verdict.UNKNOWN
    assert judge(LOSS, SEEN, {}, missing_rows=0) == (Verdict.HELD, "")


def test_deliveries_without_a_place_do_not_show_that_nothing_is_lost() -> None:
    verdict, reason = judge(LOSS, SEEN | {"groups": 0}, {}, 0)
    assert (verdict, reason) == (Verdict.UNKNOWN, "no delivery to a group names its queue and offset")


def test_a_finding_that_may_have_an_earlier_cause_is_unknown() -> None:
    older: dict[tuple[str, str | None], int] = {("lost-write", "before_log"): 1}
    assert judge(LOSS, SEEN, older, 0, SINCE) == (
        Verdict.UNKNOWN, f"1 finding may have an earlier cause; {SINCE}"
    )  # fmt: skip
    assert judge(LOSS, SEEN, older | {("lost-write", None): 1}, 0, SINCE)[0] is Verdict.VIOLATED
    assert judge(LOSS, SEEN, {}, 0, SINCE) == (Verdict.HELD, SINCE)


def test_findings_that_follow_from_a_violation_of_another_invariant_are_unknown() -> None:
    follow: dict[tuple[str, str | None], int] = {("poll-skip", "two_owners"): 80}
    verdict, reason = judge(CHECKS["DELIV-4"], {"delivery_steps": 5}, follow, 0)
    assert (verdict, reason) == (Verdict.UNKNOWN, "consequences of what DELIV-6 reports: 80 findings")


def test_the_time_since_which_a_log_is_complete_names_the_node_that_begins_last() -> None:
    seen = Overview(1, {}, ("a", "b"), (), 0, 0, 0, 0, ())
    assert complete_since(seen) == ""
    late = replace(seen, complete_from=5_000_000, begun_late=(("b", 7), ("a", 3)))
    assert complete_since(late) == (
        "the log is complete only from 1970-01-01 00:00:05 UTC on:"
        " b begins with seq 7, and 1 other node late, too"
    )
