"""Tests the alert rules and the dashboard against scrapes: each metric and label in them exists.

Method: a PromQL parser reads each expression; the scrapes are those of a broker, a name server, a master with
its slave, and a group.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
import yaml

from tests.impl.metrics.scrapes import all_pages, samples_of

FOLDER: Final = Path(__file__).parents[2] / "docs" / "assets" / "operations"
OF_PROMETHEUS: Final = {"up"}
"""Metrics that Prometheus makes itself."""
LABELS_OF_PROMETHEUS: Final = {"instance", "job"}
VARIABLES: Final = {"$__rate_interval": "5m", "$cluster": "c", "$node": "n"}
"""Variables of the dashboard, with a value."""


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return list(board["panels"])


NOT_SHOWN: Final = {
    "counts that change rarely": {
        "mqproof_ha_slaves_connected",
        "mqproof_metrics_left_out",
        "mqproof_namesrv_brokers",
        "mqproof_namesrv_topics",
        "rocketmq_consumer_group_number",
        "rocketmq_topic_number",
    },
    "the progress of the scrub; the damage that it finds is shown": {
        "mqproof_scrub_passes_total",
        "mqproof_scrubbed_records_total",
    },
    "settings, and values that follow from those of a panel": {
        "process_start_time_seconds",
        "rocketmq_broker_permission",
        "rocketmq_consumer_queueing_latency_milliseconds",
        "rocketmq_processor_watermark",
        "rocketmq_storage_message_reserve_time_milliseconds",
    },
}
"""The metrics that neither the dashboard nor an alert uses, by the reason."""

RULES: Final = rules()
TARGETS: Final = [target for panel in panels() for target in panel["targets"]]


@cache
def known() -> dict[str, frozenset[str]]:
    """Return the labels of each sample that is scraped."""
    found = {name: frozenset().union(*sets) for name, sets in samples_of(all_pages()).items()}
    return {name: labels | LABELS_OF_PROMETHEUS for name, labels in found.items()} | {
        name: frozenset(LABELS_OF_PROMETHEUS) for name in OF_PROMETHEUS
    }


def parsed(expression: str) -> object:
    """Parse an expression. Raises ValueError for a syntax error."""
    for variable, text in VARIABLES.items():
        expression = expression.replace(variable, text)
    return promql_parser.parse(expression)


def selectors(expression: object) -> Iterator[promql_parser.VectorSelector]:
    """Yield the selectors of a parsed expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    for part in ("expr", "lhs", "rhs", "vector_selector", "param"):
        if (inner := getattr(expression, part, None)) is not None:
            yield from selectors(inner)
    for argument in getattr(expression, "args", ()):
        yield from selectors(argument)


def used(expression: str) -> set[str]:
    """Return the names of the metrics in an expression, without the suffix of a histogram."""
    return {family(one.name or "") for one in selectors(parsed(expression))}


def family(sample: str) -> str:
    return re.sub("_(bucket|count|sum)$", "", sample)


def grouped(expression: str) -> set[str]:
    """Return the labels after `by` and `on`."""
    lists = re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression)
    return {label.strip() for labels in lists for label in labels.split(",")}


def problems(expression: str) -> list[str]:
    """Return what in an expression does not exist in any scrape. Raises ValueError for a syntax error."""
    found = list(selectors(parsed(expression)))
    unknown = [f"metric {one.name}" for one in found if one.name not in known()]
    for one in found:
        labels = {matcher.name for matcher in one.matchers.matchers} | (
            grouped(expression) if len(found) == 1 else set()
        )
        unknown += [f"{label} of {one.name}" for label in labels - known().get(one.name or "", frozenset())]
    every = frozenset().union(*(known().get(one.name or "", frozenset()) for one in found))
    return unknown + [f"label {label}" for label in grouped(expression) - every] if found else ["no metric"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_uses_only_what_a_scrape_has(rule: dict[str, Any]) -> None:
    assert problems(rule["expr"]) == []
    shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    labels = grouped(rule["expr"]) if " by " in rule["expr"] else set()
    for one in selectors(promql_parser.parse(rule["expr"])):
        labels |= known()[one.name or ""] if " by " not in rule["expr"] else set()
    assert shown <= labels
    assert rule["labels"]["severity"] in ("critical", "warning")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["expr"][:60])
def test_a_query_of_the_dashboard_uses_only_what_a_scrape_has(target: dict[str, Any]) -> None:
    assert problems(target["expr"]) == []


def test_each_metric_is_shown_or_has_a_reason_why_not() -> None:
    shown = set().union(*(used(one["expr"]) for one in (*TARGETS, *RULES)))
    left_out = set().union(*NOT_SHOWN.values())
    assert {family(sample) for sample in known()} == shown | left_out
    assert not shown & left_out


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("rocketmq_messages_in", ["metric rocketmq_messages_in"]),
        ('mqproof_role{rôle="x"}', None),
        ('mqproof_role{kind="x"}', ["kind of mqproof_role"]),
        (
            "sum by (topics) (rocketmq_messages_in_total)",
            ["topics of rocketmq_messages_in_total", "label topics"],
        ),
        ("rate(mqproof_disk_full[5m]) >", None),
        ("vector(1)", ["no metric"]),
    ],
)
def test_a_mistake_in_an_expression_is_noticed(expression: str, problem: list[str] | None) -> None:
    if problem is None:
        with pytest.raises(ValueError, match=r"."):
            problems(expression)
    else:
        assert problems(expression) == problem


def test_alerts_and_panels_have_different_names() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names) >= 20
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)


def test_the_panels_do_not_overlap() -> None:
    places: dict[tuple[int, int], int] = {}
    for panel in panels():
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert places.setdefault((x, y), panel["id"]) == panel["id"]
                assert x < 24


def test_the_variables_of_the_dashboard_are_labels_of_a_metric() -> None:
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))
    queries = [one["definition"] for one in board["templating"]["list"] if one["type"] == "query"]
    assert len(queries) == 2
    for query in queries:
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()  # type: ignore[union-attr]
        assert problems(metric) == []
        assert label in known()[metric.partition("{")[0]]
