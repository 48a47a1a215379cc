"""The generated columns are a history that is judged from columns, as from its lines."""

from pathlib import Path

from mqproof.conformance.bench.history_checks import measure_columns, table
from mqproof.conformance.bench.history_columns import write
from mqproof.conformance.history.columns.conversion import read_columns
from mqproof.conformance.history.columns.judged_columns import judge_columns
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.parallel import findings
from mqproof.report.model import Verdict


def test_generated_columns_have_no_anomaly_and_are_judged_from_columns(tmp_path: Path) -> None:
    operations = write(tmp_path / "h.columns", 300, 3)
    history, found = record(read_columns(tmp_path / "h.columns")), judge_columns(tmp_path / "h.columns", 1)
    assert (history.gaps, history.operations, found.whole.operations) == ([], operations, operations)
    assert (len(found.cleared), found.others) == (3, {})
    one, two = findings(history, 1), found.findings
    assert {rule: finding.counts for rule, (finding, _) in one.items()} == {
        rule: finding.counts for rule, (finding, _) in two.items()
    }
    verdicts = {rule: finding.verdict for rule, (finding, _) in two.items()}
    assert verdicts == {rule: finding.verdict for rule, (finding, _) in one.items()}
    assert Verdict.VIOLATED not in verdicts.values()


def test_the_benchmark_measures_columns(tmp_path: Path) -> None:
    result = measure_columns(600, tmp_path)
    assert (result["operations"], result["rules_violated"]) == (576, [])
    assert all(result[name] > 0 for name in ("seconds", "largest_process_mib", "operations_of_all_cores"))
    assert "MiB of the largest process" in table(result)
    assert list(tmp_path.iterdir()) == []
