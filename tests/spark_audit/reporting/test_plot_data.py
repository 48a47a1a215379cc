"""Tests the numbers of the plots, and the report page in a browser, if one is installed."""

import json
import re
import shutil
import subprocess
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqproof.report import html
from mqproof.report.model import Moment, Report, Result, Verdict, Witness
from mqproof.report.svg import inline
from mqproof.spark_audit.audit import Audit, violation_times
from mqproof.spark_audit.evidence.collect import collected
from mqproof.spark_audit.evidence.embedded_collect import embedded_collected
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.passes.profile_partition import profile
from mqproof.spark_audit.reporting.plot_data import WAIT_MIN_US, pictures
from mqproof.spark_audit.reporting.plots import figures
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spec.events import Kind
from tests.spark_audit.conftest import STEP_US, LogBuilder, embedded_log, frame

SEEN = Overview(9, {"send": 3, "deliver": 6}, ("a", "b"), ("b",), 0, 100 * STEP_US, 0, 0, ())


SHOWN = LogBuilder(subscribed=()).stored("m_0", 0).stored("m_1", 1).deliver("m_0", 0).deliver("m_1", 1).rows


@pytest.mark.deep("10 s of Spark's planning; the same queries run on DuckDB in every run")
def test_the_plots_show_the_numbers_of_the_log_on_spark(spark: SparkSession) -> None:
    log = EventLog.of(frame(spark, SHOWN))
    with collected(log, pictures=True) as seen:
        _assert_shown(pictures(seen.evidence, seen.overview, profile(log), log))


def test_the_plots_show_the_numbers_of_the_log() -> None:
    with embedded_log(SHOWN) as log, embedded_collected(log, pictures=True) as seen:
        _assert_shown(pictures(seen.evidence, seen.overview, seen.examined.profile, None))


def _assert_shown(drawn: dict[str, list[Any]]) -> None:
    assert Counter(kind for _, kind, _ in drawn["over_time"]) == Counter(
        {"send": 2, "append": 2, "send_ack": 2, "deliver": 2, "recover": 1}
    )
    assert {(what, round(low / STEP_US), count) for what, low, count in drawn["latency"]} == {
        ("born to stored", 1, 2),
        ("born to acknowledged", 2, 2),
        # A bin is identified by its beginning.
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


def drawn_of(folder: Path, names: dict[str, str], found: Sequence[tuple[str | None, str | None]] = ()) -> str:
    """Return, as one text, all plots of a small log in which topic, broker and group have these names."""
    topic, broker, group = (names.get(what, what) for what in ("topic", "broker", "group"))
    traffic = [("send", 4), ("append", 4), ("deliver", 3)]
    numbers: dict[str, list[Any]] = {
        "over_time": [(n * STEP_US, names.get("kind", "send"), 1) for n in range(4)],
        "topics": [(topic, *rest) for rest in traffic],
        "brokers": [(broker, *rest) for rest in traffic],
        "queues": [(broker, topic, 0, group, 3)],
    }
    return plots_of(folder, numbers, found)


def plots_of(
    folder: Path, numbers: dict[str, list[Any]], found: Sequence[tuple[str | None, str | None]] = ()
) -> str:
    """Return the plots of these numbers, and of violations at these topics and brokers."""
    folder.mkdir(exist_ok=True)
    if found:
        rows = {
            "invariant": pa.array(["DELIV-1"] * len(found)), "rule": pa.array(["lost-write"] * len(found)),
            "topic": pa.array([topic for topic, _ in found], "string"),
            "broker": pa.array([broker for _, broker in found], "string"),
            "first_ts": pa.array([STEP_US] * len(found)), "cause": pa.nulls(len(found), "string"),
        }  # fmt: skip
        pq.write_table(pa.table(rows), folder / "part.parquet")
    audit = Audit(SEEN, {}, (), Counter(), folder, pictures=numbers)
    drawn = figures(audit, {})
    # As on the page: invalid SVG is refused.
    return "".join(inline(figure.svg, figure.title) for figure in drawn)


def texts(svg: str) -> list[str]:
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (r"a$\b$", r"a$\b$"),
        ("cost$of$goods", "cost$of$goods"),
        (r"a\$b$", r"a\$b$"),
        ("t\x1b[31m", r"t\x1b[31m"),
        ("abc\u202egpj.exe", r"abc\u202egpj.exe"),
        ("a\nb", r"a\nb"),
        ("]]>&<!--", "]]>&<!--"),
        ("\udc80", r"\udc80"),
        ("订单", "订单"),
    ],
)
def test_names_with_any_characters_are_drawn(tmp_path: Path, name: str, shown: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = drawn_of(tmp_path / "f", dict.fromkeys(("kind", "topic", "broker", "group"), name))
    # The kind and group are in a legend, topic and broker beside an axis, and both in the name of a queue.
    assert texts(svg).count(shown) == 4
    assert f"{shown}/{shown}/0" in texts(svg)


def test_a_name_that_begins_with_an_underscore_is_in_the_legend(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = drawn_of(tmp_path / "f", {"group": "_legacy_group", "kind": "_kind"})
    shown = [text.lstrip("\u200b") for text in texts(svg)]
    assert "_legacy_group" in shown
    assert "_kind" in shown


def test_long_names_are_shortened_in_the_middle(tmp_path: Path) -> None:
    long = {"topic": "T" * 126 + "1", "broker": "b" * 254 + "2", "group": "g" * 254 + "3"}
    shown = texts(drawn_of(tmp_path / "f", long))
    assert max(map(len, shown)) <= 60
    for kept in (f"{'T' * 16}…{'T' * 14}1", f"{'b' * 16}…{'b' * 14}2", f"{'g' * 16}…{'g' * 14}3"):
        assert kept in shown


def traffic_of(counts: dict[str, int]) -> list[tuple[str, str, int]]:
    return [(name, kind, count) for name, count in counts.items() for kind in ("send", "append", "deliver")]


def violation_counts(svg: str) -> list[int]:
    matches = [re.fullmatch(r"([\d,]+) violations?", text) for text in texts(svg)]
    return [int(match[1].replace(",", "")) for match in matches if match]


def test_places_with_violations_are_shown_before_busy_places(tmp_path: Path) -> None:
    topics = {f"topic_{n:02}": 1000 + n for n in range(12)} | {"quiet": 3}
    brokers = {"broker-a": sum(topics.values())}
    numbers = {"topics": traffic_of(topics), "brokers": traffic_of(brokers)}
    shown = texts(plots_of(tmp_path / "f", numbers, [("quiet", "broker-a")] * 7))
    assert "quiet" in shown
    assert shown.count("7 violations") == 2
    # Only the least busy topic without violations is left out.
    assert "topic_01" in shown
    assert "topic_00" not in shown
    assert "1 other" in shown


def test_places_without_a_row_of_their_own_share_one_row(tmp_path: Path) -> None:
    names = {f"name_{n:02}": 10 + n for n in range(30)}
    found: list[tuple[str | None, str | None]] = [
        (name, name) for n, name in enumerate(names) for _ in range(n % 3 + 1)
    ]
    # Violations of a ledger have no topic; those of name servers have no broker, either. One broker has no
    # traffic.
    found += [(None, "name_00"), (None, "silent"), (None, None)]
    numbers = {"topics": traffic_of(names), "brokers": traffic_of(names)}
    svg = plots_of(tmp_path / "f", numbers, found)
    shown = texts(svg)
    assert "18 others" in shown
    assert "19 others" in shown
    assert shown.count("no single place") == 2
    assert sum(violation_counts(svg)) == 2 * len(found)
    # The bars of the others are cut off and labelled with their length.
    ranked = sorted(names.values(), key=lambda count: ((count - 10) % 3, count), reverse=True)
    assert [text.strip() for text in shown if "→" in text] == [f"{sum(ranked[12:])} →"] * 6


def test_violations_at_a_place_without_sends_are_shown(tmp_path: Path) -> None:
    numbers: dict[str, list[Any]] = {"topics": traffic_of({"orders": 5}), "brokers": []}
    svg = plots_of(tmp_path / "f", numbers, [("orders", None), ("others", None)])
    assert sorted(violation_counts(svg)) == [1, 1, 2]


def test_the_largest_queues_are_shown_and_the_others_share_one_row(tmp_path: Path) -> None:
    queues = [("broker-a", "orders", n, group, 1000 + n) for n in range(500) for group in ("g", "h")]
    shown = texts(plots_of(tmp_path / "f", {"queues": queues}))
    assert [text for text in shown if text.startswith("orders/")] == [
        f"orders/broker-a/{n}" for n in range(476, 500)
    ]
    assert "476 others" in shown
    assert f"{sum(2 * (1000 + n) for n in range(476)):,} →" in [text.strip() for text in shown]


def test_queues_with_equal_short_names_keep_separate_rows(tmp_path: Path) -> None:
    topics = [f"{'T' * 50}{n}{'T' * 50}" for n in range(3)]
    shown = texts(plots_of(tmp_path / "f", {"queues": [(None, topic, 0, None, 5) for topic in topics]}))
    assert len([text for text in shown if text.endswith("/0")]) == 3
    assert "(no group)" in shown


def test_no_label_extends_beyond_the_left_edge_of_the_figure(tmp_path: Path) -> None:
    names = {"topic": "%RETRY%" + "M" * 120, "broker": "broker-a", "group": "M" * 255}
    svg = drawn_of(tmp_path / "f", names)
    right_ends = re.findall(r'text-anchor: end;[^>]* x="([\d.]+)"[^>]*>([^<]*)<', svg)
    labels = [(float(end), text) for end, text in right_ends if "M" in text]
    assert len(labels) == 2
    for end, text in labels:
        # A letter of nine points is about five and a half points wide.
        assert end >= 5.5 * len(text)


def test_counts_are_whole_numbers_even_for_a_small_log(tmp_path: Path) -> None:
    numbers = {"latency": [("born to stored", 1000.0, 1)], "lag": []}
    svg = drawn_of(tmp_path / "f", {}, [("topic", "broker")]) + plots_of(tmp_path / "f", numbers)
    assert [text for text in texts(svg) if re.search(r"\d m$", text.strip())] == []


GROUPS = [f"group_{number}" for number in range(12)]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Write a report with every plot, from given numbers."""
    found = tmp_path / "findings" / "DELIV-3"
    found.mkdir(parents=True)
    times = [10 * STEP_US, 70 * STEP_US]
    rows = {
        "invariant": ["DELIV-3"] * 2, "rule": ["duplicate-delivery"] * 2, "topic": ["orders"] * 2,
        "broker": ["broker-a"] * 2, "first_ts": times, "cause": pa.nulls(2, "string"),
    }  # fmt: skip
    pq.write_table(pa.table(rows), found / "part.parquet")
    traffic = [("orders", "send", 30), ("orders", "append", 29), ("orders", "deliver", 58)]
    timeline = (Moment("2026-09-21 14:13:20.006000", "broker-a", "append orders/0 " + "at its place " * 20),)
    result = Result(
        "DELIV-3", "DuplicatesExplained", "audit", Verdict.VIOLATED, {"duplicate-delivery": 2},
        (Witness("message " + "M" * 300, timeline=timeline),),
    )  # fmt: skip
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
        "Time from producer to consumer", "Lag", "Deliveries by queue and group",
    ]  # fmt: skip
    path = tmp_path / "report.html"
    path.write_text(html.render(Report("mqproof audit", (result,), figures=drawn)))
    return path


def test_the_plots_have_text_labels(page: Path) -> None:
    text = page.read_text()
    for words in ("2 violations", "no cause", "the group rebalanced in between", "half within"):
        assert words in text
    # There are more groups than colours: the remaining groups share one.
    assert [group for group in GROUPS if group in text] == GROUPS[:9]
    assert "(others)" in text


def test_kinds_without_a_line_of_their_own_share_one_line(tmp_path: Path) -> None:
    rare = [(0, kind, 1) for kind in list(Kind)[8:]]
    over_time = [(0, kind, 100) for kind in list(Kind)[:8]]

    def draw(rows: list[tuple[int, Kind, int]]) -> str:
        (drawn,) = figures(Audit(SEEN, {}, (), Counter(), tmp_path, pictures={"over_time": rows}), {})
        return drawn.svg

    assert "(others)" not in draw(over_time)
    assert "(others)" in draw(over_time + rare)


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


def test_a_log_with_an_extreme_clock_value_is_drawn(tmp_path: Path) -> None:
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


def evaluate_in_browser(page: Path, width: int, script: str) -> Any:
    """Evaluate a JavaScript expression on the page in a window of that width, without network access."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here")
    probe = page.with_name("probe.html")
    element = f"<script>document.title = JSON.stringify({script})</script></body>"
    probe.write_text(page.read_text().replace("</body>", element))
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--window-size={width},900", f"--user-data-dir={page.with_name('profile')}",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "Refused to" not in done.stderr
    return json.loads(done.stdout.partition("<title>")[2].partition("</title>")[0])


BEYOND = "document.documentElement.scrollWidth - innerWidth"


def widths(of: str) -> str:
    return f"[...document.querySelectorAll('{of}')].map(e => Math.round(e.getBoundingClientRect().width))"


def test_a_browser_shows_the_whole_page_without_network_requests(page: Path) -> None:
    # Every plot has a width, and nothing is wider than the window.
    plots, beyond = evaluate_in_browser(page, 1000, f"[{widths('figure svg')}, {BEYOND}]")
    assert len(plots) == 7
    assert min(plots) > 600
    assert beyond <= 0


def test_in_a_narrow_window_plots_scroll_and_timelines_become_blocks(page: Path) -> None:
    plots, buckets, beyond = evaluate_in_browser(
        page, 500, f"[{widths('figure svg')}, {widths('.timeline td')}, {BEYOND}]"
    )
    assert min(plots) > 700
    assert min(buckets) > 300
    assert beyond <= 0
