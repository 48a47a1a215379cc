"""The result model: without observations the verdict is unknown, and one violation is enough for violated."""

import pytest

from mqproof.report.model import Exit, Result, Verdict, Witness, exit_code, overall


def result(verdict: Verdict) -> Result:
    return Result("FLUSH-1", "SyncAckedDurable", "tla", verdict, {"states": 1})


def test_a_held_result_without_a_positive_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing was counted"):
        Result("FLUSH-1", "SyncAckedDurable", "tla", Verdict.HELD)
    with pytest.raises(ValueError, match="nothing was counted"):
        Result("FLUSH-1", "SyncAckedDurable", "tla", Verdict.HELD, {"states": 0})


@pytest.mark.parametrize(
    ("verdicts", "expected", "code"),
    [
        ((), Verdict.UNKNOWN, Exit.INCONCLUSIVE),
        ((Verdict.HELD,), Verdict.HELD, Exit.HELD),
        ((Verdict.NOT_TESTED,), Verdict.UNKNOWN, Exit.INCONCLUSIVE),
        ((Verdict.HELD, Verdict.NOT_TESTED), Verdict.HELD, Exit.HELD),
        ((Verdict.HELD, Verdict.UNKNOWN), Verdict.UNKNOWN, Exit.INCONCLUSIVE),
        ((Verdict.HELD, Verdict.UNKNOWN, Verdict.VIOLATED), Verdict.VIOLATED, Exit.VIOLATED),
    ],
    ids=[
        "no result",
        "held",
        "not tested",
        "held and not tested",
        "held and unknown",
        "held, unknown and violated",
    ],
)
def test_several_verdicts_combine_into_one_verdict_and_exit_code(
    verdicts: tuple[Verdict, ...], expected: Verdict, code: int
) -> None:
    results = [result(verdict) for verdict in verdicts]
    assert overall(results) is expected
    assert exit_code(results) == code


@pytest.mark.parametrize(
    ("found", "shown", "text"),
    [
        (0, 2, ""),
        (0, 1, "1 more of 2"),
        (9, 2, "7 more of 9, all in all.parquet"),
        (9, 0, "9 more of 9, all in all.parquet"),
        (2, 1, "1 more of 2"),
    ],
)
def test_the_number_of_hidden_witnesses_is_reported(found: int, shown: int, text: str) -> None:
    two = (Witness("one"), Witness("two"))
    result = Result(
        "DELIV-1", "N", "audit", Verdict.VIOLATED, witnesses=two, found=found, all_in="all.parquet"
    )
    assert result.more_than(shown) == text
