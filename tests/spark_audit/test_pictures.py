"""The numbers behind the plots, and the page that shows them, opened in a browser where there is one."""

import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from report import html
from report.model import Report, Result, Verdict
from spark_audit.audit import Audit, gathered, violation_times
from spark_audit.event_log import EventLog
from spark_audit.figures import figures
from spark_audit.pictures import WAIT_MIN_US, pictures
from spark_audit.profile import Overview, profile
from tests.spark_audit.conftest import STEP_US, Story, frame

SEEN = Overview(9, {"send": 3, "deliver": 6}, ("a", "b"), ("b",), 0, 100 * STEP_US, 0, 0, ())


def test_the_plots_are_of_what_is_in_the_log(spark: SparkSession) -> None:
    story = Story().stored("m_0", 0).stored("m_1", 1).deliver("m_0", 0).deliver("m_1", 1)
    log = EventLog.of(frame(spark, story.rows))
    with gathered(log, pictures=True) as (evidence, seen, _):
        drawn = pictures(evidence, seen, profile(log), log)
    assert Counter(kind for _, kind, _ in drawn["over_time"]) == Counter(
        {"send": 2, "append": 2, "send_ack": 2, "deliver": 2, "recover": 1}
    )
    assert {(what, round(low / STEP_US), count) for what, low, count in drawn["latency"]} == {
        ("born to stored", 1, 2),
        ("born to acknowledged", 2, 2),
        # A bin is known by where it begins.
        ("stored to delivered", 4, 1),
        ("stored to delivered", 3, 1),
    }
    assert sorted((median, high) for _, median, high in drawn["lag"]) == [
        (3 * STEP_US,) * 2,
        (5 * STEP_US,) * 2,
    ]
    assert set(drawn["topics"]) == {("t", "send", 2), ("t", "append", 2), ("t", "deliver", 2)}
    assert {name for name, _, _ in drawn["brokers"]} == {"broker"}
    assert drawn["queues"] == [("broker", "t", 0, "g", 2)]


GROUPS = [f"group_{number}" for number in range(12)]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A report with every plot, made of numbers."""
    found = tmp_path / "findings" / "DELIV-3"
    found.mkdir(parents=True)
    times = [10 * STEP_US, 70 * STEP_US]
    rows = {
        "invariant": ["DELIV-3"] * 2, "rule": ["duplicate-delivery"] * 2, "topic": ["orders"] * 2,
        "broker": ["broker-a"] * 2, "first_ts": times, "cause": pa.nulls(2, "string"),
    }  # fmt: skip
    pq.write_table(pa.table(rows), found / "part.parquet")
    traffic = [("orders", "send", 30), ("orders", "append", 29), ("orders", "deliver", 58)]
    result = Result("DELIV-3", "DuplicatesExplained", "audit", Verdict.VIOLATED, {"duplicate-delivery": 2})
    by_traces = Result("DELIV-3", "DuplicatesExplained", "traces", Verdict.UNKNOWN, {"traced_repeats": 3})
    explained = Counter({("DELIV-3", "duplicate-delivery", "rebalance"): 9})
    audit = Audit(
        SEEN, {}, (result, by_traces), explained, tmp_path / "findings",
        pictures={
            "over_time": [(n * STEP_US, kind, n % 7) for n in range(100) for kind in ("send", "deliver")],
            "latency": [("born to stored", WAIT_MIN_US * 10.0**n, 5 - n) for n in range(4)],
            "lag": [(n * STEP_US, 1000 + n, 9000 + n) for n in range(0, 100, 5)],
            "topics": traffic,
            "brokers": [("broker-a", *rest) for _, *rest in traffic],
            "queues": [("broker-a", "orders", queue, group, 29) for queue in range(4) for group in GROUPS],
        },
    )  # fmt: skip
    drawn = figures(audit, {"rebalance": "the group rebalanced in between"})
    assert [figure.title.partition(",")[0].partition(":")[0] for figure in drawn] == [
        "Events over time", "Violations over time", "Messages and violations", "Messages delivered again",
        "How long a message was on its way", "Lag", "Deliveries by queue and group",
    ]  # fmt: skip
    path = tmp_path / "report.html"
    path.write_text(html.render(Report("mqproof audit", (result,), figures=drawn)))
    return path


def test_the_plots_say_in_words_what_they_show(page: Path) -> None:
    text = page.read_text()
    for words in ("2 violations", "nothing explains it", "the group rebalanced in between", "half within"):
        assert words in text
    # More than there are colours: the rest are one.
    assert [group for group in GROUPS if group in text] == GROUPS[:9]
    assert "(others)" in text


def test_no_violation_is_left_out_of_the_plot_over_time(tmp_path: Path) -> None:
    found = tmp_path / "findings" / "DELIV-1"
    found.mkdir(parents=True)
    many = 20_000
    rows = {
        "invariant": ["DELIV-1"] * many + ["DELIV-9"], "rule": ["lost-write"] * many + ["aborted-read"],
        "first_ts": [n % 100 * STEP_US for n in range(many)] + [99 * STEP_US],
        "cause": pa.nulls(many + 1, "string"),
    }  # fmt: skip
    pq.write_table(pa.table(rows), found / "part.parquet", row_group_size=6000)
    audit = Audit(SEEN, {}, (), Counter(), tmp_path / "findings")
    times = violation_times(audit, 50 * STEP_US)
    assert times == [
        (0, "DELIV-1", "lost-write", many // 2),
        (50 * STEP_US, "DELIV-1", "lost-write", many // 2),
        (50 * STEP_US, "DELIV-9", "aborted-read", 1),
    ]
    (drawn,) = figures(audit, {})
    assert "DELIV-1 lost-write: 20,000" in drawn.svg


def test_a_clock_that_is_out_of_its_mind_is_drawn(tmp_path: Path) -> None:
    found = tmp_path / "findings" / "DELIV-2"
    found.mkdir(parents=True)
    rows = {
        "invariant": ["DELIV-2"],
        "rule": ["phantom"],
        "first_ts": [9 * 10**18],
        "cause": pa.nulls(1, "string"),
    }
    pq.write_table(pa.table(rows), found / "part.parquet")
    seen = replace(SEEN, first_ts=4 * 10**18, last_ts=9 * 10**18)
    (drawn,) = figures(Audit(seen, {}, (), Counter(), tmp_path / "findings"), {})
    assert "DELIV-2 phantom: 1" in drawn.svg


def test_a_browser_shows_the_page_whole_without_fetching_anything(page: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here")
    # What the browser made of it: every plot has a width, and nothing is wider than the window.
    probe = page.with_name("probe.html")
    script = (
        "<script>document.title = JSON.stringify([...document.querySelectorAll('figure svg')]"
        ".map(e => Math.round(e.getBoundingClientRect().width)).concat("
        "document.documentElement.scrollWidth - innerWidth))</script></body>"
    )
    probe.write_text(page.read_text().replace("</body>", script))
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--window-size=1000,900", f"--user-data-dir={tmp_path / 'profile'}",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    title = done.stdout.partition("<title>")[2].partition("</title>")[0]
    *widths, beyond = map(int, title.strip("[]").split(","))
    assert len(widths) == 7
    assert min(widths) > 600
    assert beyond <= 0
    assert "Refused to" not in done.stderr
