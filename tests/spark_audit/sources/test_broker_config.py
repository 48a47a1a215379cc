"""Reads a broker's configuration, as properties and as JSON."""

from pathlib import Path

import pytest

from mqproof.spark_audit.evidence.options import LADDER_MS
from mqproof.spark_audit.sources.broker_config import BrokerConfig, parse_delays, read_config
from mqproof.spark_audit.sources.inputs import InputError


def test_the_default_delay_levels_are_those_of_released_brokers() -> None:
    text = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    assert parse_delays(text, "here") == LADDER_MS


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("", BrokerConfig()),
        ("# flushDiskType=SYNC_FLUSH\nbrokerName = a\n", BrokerConfig()),
        (
            "messageDelayLevel= 1s 2d \nflushDiskType = SYNC_FLUSH",
            BrokerConfig((1000, 172_800_000), "SYNC_FLUSH"),
        ),
        ('{"messageDelayLevel": "3h", "listenPort": 1}', BrokerConfig((10_800_000,))),
        ('{"maxHashSlotNum": 5000}', BrokerConfig(index_slots=5000)),
    ],
)
def test_a_configuration_file_is_parsed(text: str, config: BrokerConfig, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text(text)
    assert read_config(tmp_path / "broker.conf") == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flushDiskType=NEVER", "flushDiskType 'NEVER', expected SYNC_FLUSH or ASYNC_FLUSH"),
        ("messageDelayLevel=soon", "messageDelayLevel: 'soon', expected delays"),
        ("maxHashSlotNum=0", "maxHashSlotNum '0', expected a number"),
        ("{", "not a configuration of a broker"),
    ],
)
def test_an_invalid_configuration_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text(text)
    with pytest.raises(InputError, match=message):
        read_config(tmp_path / "broker.conf")
