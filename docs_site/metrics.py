"""The page of all metrics of brokers, name servers and processes."""

from collections.abc import Iterable, Iterator
from typing import Final

from docs_site.markdown import code, escaped, table
from mqproof.impl.broker.broker_metrics import BROKER_METRICS
from mqproof.impl.metrics.families import Metric
from mqproof.impl.metrics.metrics_server import READY
from mqproof.impl.metrics.process_metrics import ProcessMetrics
from mqproof.impl.namesrv.namesrv_metrics import NAMESRV_METRICS
from mqproof.impl.runtime.supervision import Supervisor

_HEAD: Final = """# Metrics

Generated from the declarations in `impl/` when the site is built. [Monitoring](../how-to/metrics.md)
describes how to turn the metrics on, and has alert rules and a dashboard.

Metrics whose name begins with `rocketmq_` have the name, the type and the labels that a broker of RocketMQ
5.5.0 with `metricsExporterType=PROM` has, without its label `otel_scope_name`. Metrics whose name begins with
`mqproof_` exist only here.
"""

PARTS: Final = (
    (
        "Broker",
        "A broker adds the labels `cluster`, `node_type` (`broker`) and `node_id` (brokerName). A master and"
        " its slaves share them; Prometheus adds `instance`.",
        BROKER_METRICS,
    ),
    (
        "Name server",
        "A name server adds the labels `node_type` (`nameserver`) and `node_id` (its address).",
        NAMESRV_METRICS,
    ),
    ("Process", "These have no further labels.", (READY, *ProcessMetrics(Supervisor()).metrics)),
)
"""Title, introduction and metrics of each part of the page."""

_TAIL: Final = """## Differences from RocketMQ 5

- `rocketmq_rpc_latency_milliseconds` and the metrics of pop consumption, of the timer and of RocksDB do not
  exist. `rocketmq_half_messages` is `mqproof_open_transactions`, without topics.
- `rocketmq_processor_watermark` has only the value `send` of the label `processor`: no other request waits.
- `rocketmq_storage_size_bytes` is the size of the commit log. A broker of 5.5.0 reports more than 17 GB
  for an almost empty store.
- At most 5000 topics, and pairs of topic and group, are counted one by one. Further ones are counted
  together, with the label `(others)`.
"""


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for title, introduction, metrics in PARTS:
        parts += [
            f"## {title}\n",
            f"{introduction}\n",
            table(["metric", "type", "labels", "meaning"], _rows(metrics)),
        ]
    return "\n".join([*parts, _TAIL])


def _rows(metrics: Iterable[Metric]) -> Iterator[list[str]]:
    for metric in metrics:
        labels = ", ".join(map(code, metric.labels))
        yield [code(metric.name), metric.type.value, labels, escaped(metric.meaning)]
