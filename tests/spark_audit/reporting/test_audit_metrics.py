"""Metrics of an audit: they parse, agree with the findings, and suffice for alert rules and dashboard."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.reporting.audit_metrics import METRICS, SERIES_MAX, Measured, page
from mqproof.spark_audit.reporting.traffic_figures import TrafficFigures
from tests.spark_audit.conftest import LogBuilder, write_ndjson

FOLDER: Final = Path(__file__).parents[3] / "docs" / "assets" / "operations"
NOTHING: Final = "(SELECT NULL::VARCHAR AS invariant, NULL::VARCHAR AS rule, NULL::VARCHAR AS cause,"
EMPTY: Final = (
    f'{NOTHING} NULL::VARCHAR AS topic, NULL::VARCHAR AS "group", NULL::VARCHAR AS msg_id,'
    " NULL::BIGINT AS first_ts WHERE false)"
)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The metrics of a log with a lost message, a repeated delivery, and one that waits."""
    folder = tmp_path_factory.mktemp("metrics")
    builder = LogBuilder()
    for offset in range(4):
        builder.stored(f"m_{offset}", offset)
    builder.deliver("m_0", 0).deliver("m_2", 2).deliver("m_2", 2)
    (folder / "log.ndjson").write_bytes(write_ndjson(builder.rows))
    arguments = [
        "audit",
        "run",
        "--events",
        str(folder / "log.ndjson"),
        "--metrics",
        str(folder / "audit.prom"),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == Exit.VIOLATED, done.output
    return samples((folder / "audit.prom").read_text(encoding="utf-8"))


def test_the_metrics_agree_with_the_findings(scraped: Samples) -> None:
    of_group = {"topic": "orders", "group": "readers"}
    (group,) = {dict(labels)["group"] for name, labels in scraped if name == "mqproof_audit_lag_messages"}
    (topic,) = {dict(labels)["topic"] for name, labels in scraped if name == "mqproof_audit_lag_messages"}
    of_group = {"topic": topic, "group": group}
    assert value(scraped, "mqproof_audit_violations", invariant="DELIV-1", rule="lost-write") == 1
    assert value(scraped, "mqproof_audit_lost_messages", **of_group) == 1
    assert value(scraped, "mqproof_audit_repeated_deliveries", cause="none", **of_group) == 1
    assert value(scraped, "mqproof_audit_lag_messages", **of_group) == 1
    assert (value(scraped, "mqproof_audit_unresolved_age_seconds", **of_group) or 0) > 0
    assert (value(scraped, "mqproof_audit_delivery_seconds", quantile="0.99", **of_group) or 0) > 0
    assert value(scraped, "mqproof_audit_verdict", invariant="DELIV-1", verdict="violated") == 1
    assert value(scraped, "mqproof_audit_events", kind="deliver") == 3
    assert value(scraped, "mqproof_audit_gaps") == 0


def test_names_are_escaped_and_a_metric_has_limited_series() -> None:
    hostile = 'a"b\\c\nd'
    lag = tuple((f"t{number}", hostile, number) for number in range(SERIES_MAX + 5))
    found = samples(page(Measured(EMPTY, {}, 0, 0, 1.5, TrafficFigures(lag=lag)), 7.0))
    assert value(found, "mqproof_audit_series_left_out") == 5
    assert value(found, "mqproof_audit_lag_messages", topic="t9", group=hostile) == 9
    assert value(found, "mqproof_audit_lag_messages", topic="t3", group=hostile) is None
    assert value(found, "mqproof_audit_finished_timestamp_seconds") == 7


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "audit-alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _panels() -> list[dict[str, Any]]:
    board = json.loads((FOLDER / "audit-dashboard.json").read_text(encoding="utf-8"))
    return list(board["panels"])


def _selectors(expression: object) -> Iterator[promql_parser.VectorSelector]:
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    for part in ("expr", "lhs", "rhs", "vector_selector"):
        if (inner := getattr(expression, part, None)) is not None:
            yield from _selectors(inner)
    for argument in getattr(expression, "args", ()):
        yield from _selectors(argument)


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: str(rule["alert"]))
def test_a_rule_uses_metrics_and_labels_that_exist(rule: dict[str, Any], scraped: Samples) -> None:
    labels = _labels_used(rule["expr"], scraped)
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels


def _labels_used(expression: str, scraped: Samples) -> set[str]:
    """Return the labels of the metrics in the expression, which all exist, as do its own labels."""
    found = list(_selectors(promql_parser.parse(expression.replace("$__rate_interval", "5m"))))
    assert found
    labels: dict[str | None, set[str]] = {}
    for name, pairs in scraped:
        labels.setdefault(name, set()).update(label for label, _ in pairs)
    for selector in found:
        assert selector.name in METRICS
        assert {matcher.name for matcher in selector.matchers.matchers} <= labels.get(selector.name, set())
    return set().union(*(labels.get(selector.name, set()) for selector in found))


@pytest.mark.parametrize("panel", _panels(), ids=lambda panel: f"{panel['id']}")
def test_a_panel_uses_metrics_and_labels_that_exist(panel: dict[str, Any], scraped: Samples) -> None:
    for target in panel["targets"]:
        labels = _labels_used(target["expr"], scraped)
        lists = re.findall(r"\bby \(([^)]*)\)", target["expr"])
        grouped = {label for names in lists for label in names.split(", ")}
        assert grouped <= labels
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= grouped


def test_the_dashboard_shows_every_metric_and_its_panels_do_not_overlap() -> None:
    shown = " ".join(target["expr"] for panel in _panels() for target in panel["targets"])
    assert [name for name in METRICS if name not in shown] == []
    places = [
        (at["x"] + x, at["y"] + y)
        for at in (panel["gridPos"] for panel in _panels())
        for x in range(at["w"])
        for y in range(at["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) == 23
