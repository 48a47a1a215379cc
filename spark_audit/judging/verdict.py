"""The verdict of a check: held, violated or unknown."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from mqproof.report.model import Verdict
from mqproof.report.printable import counted
from mqproof.spark_audit.checks import Check
from mqproof.spark_audit.checks.check import BEFORE_LOG
from mqproof.spark_audit.checks.one_owner import INVARIANT as ONE_OWNER
from mqproof.spark_audit.checks.one_owner import TWO_OWNERS
from mqproof.spark_audit.evidence.gaps import GAP
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.passes.times import time_text

CONSEQUENCES: Final = {TWO_OWNERS: ONE_OWNER}
"""Maps the cause of a finding that follows from a violation to the invariant that is violated."""


def complete_since(seen: Overview) -> str:
    """Return from when on the log of each node is complete, or "" if it has the first row of each node."""
    if seen.complete_from is None:
        return ""
    (node, number), *others = seen.begun_late
    more = f", and {counted(len(others), 'other node')} late, too" if others else ""
    begin = time_text(seen.complete_from)
    return f"the log is complete only from {begin} on: {node} begins with seq {number}{more}"


def judge(
    check: Check,
    tallies: Mapping[str, int],
    counts: Mapping[tuple[str, str | None], int],
    missing_rows: int,
    since: str = "",
    dropped: str = "",
) -> tuple[Verdict, str]:
    """Return the verdict and, if there is one, the reason.

    A missing row may be the delivery, send or rebalance that explains a violation. So a violation is proven
    only if there are more violations than missing rows. Without violations, missing rows prevent the verdict
    `held`.

    A violation that an earlier row may explain, from before the log of its node begins, makes the verdict
    unknown. So does a finding that follows from a violation of another invariant. `since` says from when on
    the log is complete; it is empty if the log has its beginning.

    `dropped` says which rows nodes have dropped. A finding that such a row may explain makes the verdict
    unknown, and without findings the verdict is not `held`.
    """
    violations = sum(n for (_, cause), n in counts.items() if cause is None)
    causes: Counter[str] = Counter()
    for (_, cause), n in counts.items():
        if cause is not None:
            causes[cause] += n
    holes = f"{missing_rows} rows of the log are missing, unreadable or set aside"
    if violations > missing_rows:
        rules = ", ".join(sorted(f"{rule} {n}" for (rule, cause), n in counts.items() if cause is None))
        return Verdict.VIOLATED, f"{rules}; {holes}" if missing_rows else rules
    if violations:
        return Verdict.UNKNOWN, f"{violations} violations found, but {holes} and may explain them"
    if reason := check.unknown_reason(tallies, causes):
        return Verdict.UNKNOWN, reason
    if before := causes[BEFORE_LOG]:
        return Verdict.UNKNOWN, f"{counted(before, 'finding')} may have an earlier cause; {since}"
    if hidden := causes[GAP]:
        return Verdict.UNKNOWN, f"a dropped event may explain {counted(hidden, 'finding')}: {dropped}"
    if follow := sum(causes[cause] for cause in CONSEQUENCES):
        reports = ", ".join(CONSEQUENCES[cause] for cause in CONSEQUENCES if causes[cause])
        return Verdict.UNKNOWN, f"consequences of what {reports} reports: {counted(follow, 'finding')}"
    if missing_rows:
        return Verdict.UNKNOWN, holes
    if dropped:
        return Verdict.UNKNOWN, dropped
    return Verdict.HELD, since
