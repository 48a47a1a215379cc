"""The verdict of a check: held, violated or unknown."""

from collections import Counter
from collections.abc import Mapping

from mqproof.report.model import Verdict
from mqproof.spark_audit.checks import Check


def judge(
    check: Check, tallies: Mapping[str, int], counted: Mapping[tuple[str, str | None], int], missing_rows: int
) -> tuple[Verdict, str]:
    """Return the verdict and, if there is one, the reason.

    A missing row may be the delivery, send or rebalance that explains a violation. So a violation is proven
    only if there are more violations than missing rows. Without violations, missing rows prevent the verdict
    `held`.
    """
    violations = sum(n for (_, cause), n in counted.items() if cause is None)
    causes: Counter[str] = Counter()
    for (_, cause), n in counted.items():
        if cause is not None:
            causes[cause] += n
    holes = f"{missing_rows} rows of the log are missing or unreadable"
    if violations > missing_rows:
        rules = ", ".join(sorted(f"{rule} {n}" for (rule, cause), n in counted.items() if cause is None))
        return Verdict.VIOLATED, f"{rules}; {holes}" if missing_rows else rules
    if violations:
        return Verdict.UNKNOWN, f"{violations} violations found, but {holes} and may explain them"
    if reason := check.unknown_reason(tallies, causes):
        return Verdict.UNKNOWN, reason
    if missing_rows:
        return Verdict.UNKNOWN, holes
    return Verdict.HELD, ""
