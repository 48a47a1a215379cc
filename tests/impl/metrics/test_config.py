"""Tests that metrics are off by default, on the loopback address, and that other exporters are refused."""

import pytest

from mqproof.impl.broker import config as broker
from mqproof.impl.metrics.config import METRICS_OPTIONS, MetricsConfig
from mqproof.impl.namesrv import config as namesrv
from mqproof.impl.runtime.properties import ConfigError

ON = "metricsExporterType=PROM\nmetricsPromExporterPort=9100\nmetricsPromExporterHost=10.0.0.1\n"


def test_metrics_are_off_by_default_and_on_the_loopback_address() -> None:
    assert not MetricsConfig().is_on
    assert MetricsConfig().metrics_host == "127.0.0.1"


def test_the_keys_of_rocketmq_turn_them_on() -> None:
    config, unknown = broker.read(ON, "f")
    assert unknown == ()
    assert config.metrics.is_on
    assert (config.metrics.metrics_host, config.metrics.metrics_port) == ("10.0.0.1", 9100)
    assert set(ON.splitlines()) <= set(broker.show(config).splitlines())


@pytest.mark.parametrize("line", ["metricsExporterType=OTLP_GRPC", "metricsPromExporterPort=65536"])
def test_what_is_not_supported_is_refused(line: str) -> None:
    with pytest.raises(ConfigError, match=line.split("=")[1]):
        broker.read(line, "f")


@pytest.mark.parametrize("key", METRICS_OPTIONS)
def test_the_keys_cannot_change_while_a_server_runs(key: str) -> None:
    value = dict(line.split("=") for line in ON.splitlines())[key]
    with pytest.raises(ConfigError, match=key):
        broker.updated(broker.BrokerConfig(), f"{key}={value}")
    with pytest.raises(ConfigError, match=key):
        namesrv.updated(namesrv.NameServerConfig(), f"{key}={value}")
