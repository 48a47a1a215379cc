"""The matrix shows the worst verdict per invariant and layer, and nothing where there is no result."""

from mqproof.report.matrix import TITLED_MAX, label, matrix, tally, titled
from mqproof.report.model import Result, Verdict
from tests.report.examples import REPORT


def test_rows_are_invariants_and_columns_are_layers() -> None:
    verdicts = matrix(REPORT.results)
    assert verdicts.layers == ("tla", "conformance", "audit")
    assert [(row.id, row.cells) for row in verdicts.rows] == [
        ("FLUSH-1", (Verdict.HELD, Verdict.VIOLATED, None)),
        ("FLUSH-3", (Verdict.UNKNOWN, None, None)),
        ("DELIV-1", (None, None, Verdict.NOT_TESTED)),
    ]


def test_several_results_of_one_invariant_and_layer_show_the_worst_verdict() -> None:
    def worst(*verdicts: Verdict) -> Verdict | None:
        results = [
            Result("FLUSH-1", "SyncAckedDurable", "tla", verdict, {"states": 1}) for verdict in verdicts
        ]
        return matrix(results).rows[0].cells[0]

    assert worst(Verdict.HELD, Verdict.VIOLATED) is Verdict.VIOLATED
    assert worst(Verdict.HELD, Verdict.UNKNOWN) is Verdict.UNKNOWN
    assert worst(Verdict.HELD, Verdict.NOT_TESTED) is Verdict.HELD
    assert worst(Verdict.NOT_TESTED, Verdict.NOT_TESTED) is Verdict.NOT_TESTED


def test_the_label_of_a_verdict_is_a_symbol_and_a_word() -> None:
    assert label(Verdict.HELD) == "✓ held"
    assert label(None) == ""


def test_tally_counts_every_verdict() -> None:
    assert list(tally(REPORT.results).values()) == [1, 1, 1, 1]
    assert set(tally(())) == set(Verdict)


def test_the_title_of_many_results_ends_with_the_number_of_unnamed_results() -> None:
    many = [Result(f"case/{number}", "", "wire", Verdict.NOT_TESTED) for number in range(TITLED_MAX + 2)]
    assert titled(many[:2]) == "case/0, case/1"
    assert titled(many).endswith(f"case/{TITLED_MAX - 1} and 2 more")
