"""A verdict is not stronger than its evidence."""

from mqproof.report.model import Verdict
from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.judging.verdict import judge

LOSS = CHECKS["DELIV-1"]

SEEN = {"acked": 5, "acked_and_delivered": 5}


def test_violations_that_missing_rows_may_explain_are_unknown() -> None:
    lost: dict[tuple[str, str | None], int] = {("lost-write", None): 3}
    assert judge(LOSS, SEEN, lost, missing_rows=0)[0] is Verdict.VIOLATED
    assert judge(LOSS, SEEN, lost, missing_rows=2)[0] is Verdict.VIOLATED
    assert judge(LOSS, SEEN, lost, missing_rows=3)[0] is Verdict.UNKNOWN
    assert judge(LOSS, SEEN, {}, missing_rows=1)[0] is Verdict.UNKNOWN
    assert judge(LOSS, SEEN, {}, missing_rows=0) == (Verdict.HELD, "")
