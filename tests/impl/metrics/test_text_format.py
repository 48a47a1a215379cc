"""Tests that Prometheus' own parser reads our pages of metrics, whatever names clients choose."""

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqproof.impl.metrics.families import Distribution, Family, Metric, MetricType
from mqproof.impl.metrics.text_format import number, render

COUNT = Metric("a_total", MetricType.COUNTER, "Counts\n with a \\ in it.", ("topic",))
SIZE = Metric("size", MetricType.HISTOGRAM, "Sizes.")


def test_families_of_several_sources_come_together_under_one_head() -> None:
    page = render([Family(COUNT, {"node": node}, {("T",): 1}) for node in ("a", "b")]).decode()
    assert page.count("# TYPE a_total counter\n") == 1
    (metric,) = text_string_to_metric_families(page)
    assert [(sample.labels, sample.value) for sample in metric.samples] == [
        ({"node": "a", "topic": "T"}, 1.0),
        ({"node": "b", "topic": "T"}, 1.0),
    ]
    assert metric.documentation == COUNT.meaning


@pytest.mark.parametrize("name", ['"', "\\", "\n", '\\"\n', "é", "}", "", "# HELP x y", "\ud800"])
def test_a_name_chosen_by_a_client_cannot_change_the_page(name: str) -> None:
    page = render([Family(COUNT, {}, {(name,): 7, ("other",): 8})]).decode()
    (metric,) = text_string_to_metric_families(page)
    assert [sample.value for sample in metric.samples] == [7.0, 8.0]
    assert metric.samples[0].labels == {"topic": name.replace("\ud800", "?")}


def test_a_histogram_has_cumulative_counts_and_their_sum() -> None:
    sizes = Distribution((10, 20))
    for size in (5, 10, 15, 100):
        sizes.add(size)
    (metric,) = text_string_to_metric_families(render([Family(SIZE, {}, {(): sizes})]).decode())
    values = {(one.name, one.labels.get("le", "")): one.value for one in metric.samples}
    assert values == {
        ("size_bucket", "10.0"): 2.0,
        ("size_bucket", "20.0"): 3.0,
        ("size_bucket", "+Inf"): 4.0,
        ("size_sum", ""): 130.0,
        ("size_count", ""): 4.0,
    }


@pytest.mark.parametrize("value", [0, 1, -1, 2**63, 0.1, 1e300, math.inf, -math.inf])
def test_a_number_is_read_again_as_it_was(value: float) -> None:
    assert float(number(value)) == value


def test_a_family_without_values_has_no_sample() -> None:
    (metric,) = text_string_to_metric_families(render([Family(COUNT, {}, {})]).decode())
    assert metric.samples == []
