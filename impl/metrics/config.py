"""Whether metrics are exported, and where."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mqproof.impl.runtime.properties import Option, number, one_of, text


class Exporter(StrEnum):
    """How metrics are exported. The values are RocketMQ's; its other values are refused."""

    DISABLE = "DISABLE"
    PROM = "PROM"


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    exporter: Exporter = Exporter.DISABLE
    """DISABLE, or PROM: an HTTP server returns metrics, and whether the server is healthy and ready."""
    metrics_host: str = "127.0.0.1"
    """The address to listen on for HTTP. It has no authentication."""
    metrics_port: int = 5557
    """The port to listen on for HTTP; 0 selects any free port."""

    @property
    def is_on(self) -> bool:
        return self.exporter is Exporter.PROM


METRICS_OPTIONS: Final[Mapping[str, Option]] = {
    "metricsExporterType": Option("exporter", one_of({one.value: one for one in Exporter})),
    "metricsPromExporterHost": Option("metrics_host", text),
    "metricsPromExporterPort": Option("metrics_port", number(0, 65535)),
}
"""Maps a key in the file to the field of MetricsConfig."""
