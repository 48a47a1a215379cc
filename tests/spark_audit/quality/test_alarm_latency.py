"""The measurement of alarms: its log has exactly the losses that it counts, and a watch reports them."""

from io import StringIO
from pathlib import Path

import pytest

from mqproof.spark_audit.audit import violations
from mqproof.spark_audit.checks import EVENT_CHECKS
from mqproof.spark_audit.quality.alarm_latency import Alarms, LossyTraffic, Timing, delays, measure, quantile
from tests.spark_audit.conftest import embedded_audit


def test_the_log_has_the_losses_whose_alarms_are_expected(tmp_path: Path) -> None:
    traffic = LossyTraffic(100, 10, 1_000_000)
    rows = [*traffic.rows_until(1_300_000), *traffic.rows_until(1_505_000)]
    assert {name: at // 1_000 for name, at in traffic.proven.items()} == {
        "m9": 1_103, "m19": 1_203, "m29": 1_303, "m39": 1_403, "m49": 1_503,
    }  # fmt: skip
    found = violations(embedded_audit(rows, tmp_path, checks={"DELIV-1": EVENT_CHECKS["DELIV-1"]}))
    assert {row["msg_id"] for row in found} == traffic.proven.keys()


def test_a_loss_without_an_alarm_counts_as_infinitely_late() -> None:
    traffic = LossyTraffic(100, 10, 0, proven={"a": 0, "b": 1_000_000, "c": 0})
    alarms = Alarms(StringIO("-  DELIV-1  lost-write  topic=t  msg_id=a\n-  DELIV-4  poll-skip  msg_id=c\n"))
    alarms.read()
    assert alarms.at_us.keys() == {"a"}
    alarms.at_us |= {"a": 2_000_000, "b": 4_500_000}
    assert delays(traffic, alarms) == [2.0, 3.5, float("inf")]
    assert [quantile([1, 2, 3, 4], share) for share in (0, 0.5, 0.99, 1)] == [1, 3, 4, 4]


@pytest.mark.deep("a process and some 30 s of real time")
@pytest.mark.timeout(1800)
def test_a_watch_reports_each_loss() -> None:
    found = measure(6, 50, Timing(file_s=1, late_s=1, every_s=1, alarm_max_s=900))
    assert len(found) >= 6
    assert found[-1] < float("inf")
