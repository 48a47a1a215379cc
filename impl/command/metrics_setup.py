"""Adds the HTTP server of metrics to the servers of a process, if the configuration turns it on."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported late: a command loads only what it uses
    from mqproof.impl.metrics.config import MetricsConfig
    from mqproof.impl.metrics.families import Source
    from mqproof.impl.runtime.runtime import Runtime

Servers = dict[str, Callable[[Any], Any]]
"""By name, how each server is made, as `serving.until_signal` takes them."""


def with_metrics(servers: Servers, config: "MetricsConfig", runtime: "Runtime") -> Servers:
    """Return the servers, preceded by the server of their metrics.

    It starts first and stops last, so that it reports that the others are starting or stopping.
    """
    if not config.is_on:
        return servers
    from mqproof.impl.metrics.metrics_server import MetricsServer
    from mqproof.impl.metrics.process_metrics import ProcessMetrics

    metrics = MetricsServer(config, runtime, servers)
    metrics.sources["process"] = ProcessMetrics(runtime.supervisor)

    def watched(name: str, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def made(known: Any) -> Any:
            server = make(known)
            metrics.sources[name] = _source(name, server)
            return server

        return made

    return {"metrics": lambda _: metrics, **{name: watched(name, make) for name, make in servers.items()}}


def _source(name: str, server: Any) -> "Source":
    if name == "namesrv":
        from mqproof.impl.namesrv.namesrv_metrics import NameServerMetrics

        return NameServerMetrics(server)
    from mqproof.impl.broker.broker_metrics import BrokerMetrics

    return BrokerMetrics(server)
