"""A name server as a source of metrics."""

from collections.abc import Sequence
from typing import Final

from mqproof.impl.metrics.families import Family, Metric, MetricType
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.budget_metrics import BUDGET_METRICS, budget_families

BROKERS: Final = Metric("mqproof_namesrv_brokers", MetricType.GAUGE, "Brokers that are registered.")
TOPICS: Final = Metric("mqproof_namesrv_topics", MetricType.GAUGE, "Topics that have a route.")

NAMESRV_METRICS: Final[Sequence[Metric]] = (BROKERS, TOPICS, *BUDGET_METRICS)


class NameServerMetrics:
    """The source of one name server."""

    def __init__(self, server: NameServer) -> None:
        self._server = server

    @property
    def metrics(self) -> Sequence[Metric]:
        return NAMESRV_METRICS

    def unready(self) -> str:
        return "" if self._server.address is not None else "starting or stopping"

    async def collect(self) -> list[Family]:
        server = self._server
        if server.address is None:
            return []
        labels = {"node_type": "nameserver", "node_id": str(server.address)}
        found = {BROKERS: len(server.table.living()), TOPICS: len(server.table.topics())}
        families = [Family(metric, labels, {(): value}) for metric, value in found.items()]
        return families + budget_families(server.budgets, labels)
