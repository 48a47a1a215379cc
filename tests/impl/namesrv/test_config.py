"""Tests the settings of a name server: their defaults, and the values that a key accepts.

Source: docs/reference/protocol/name-server.md, "Administration of a name server".
"""

import pytest

from mqproof.impl.namesrv.config import OPTIONS, NameServerConfig, show, updated
from mqproof.impl.runtime.properties import ConfigError, ProtectedKeyError

DEFAULTS = """\
listenPort=9876
kvConfigPath=store/namesrv/kvConfig.json
aclEnable=false
aclFile=
addressSharePercent=50
connectionSharePercent=10
scanNotActiveBrokerInterval=10000
orderMessageEnable=false
returnOrderTopicConfigToBroker=true
supportActingMaster=false
needWaitForService=false
waitSecondsForService=45
enableTopicList=true
enableAllTopicList=true
deleteTopicWithBrokerRegistration=false
"""


def test_the_settings_have_the_defaults_of_released_name_servers() -> None:
    assert show(NameServerConfig()).startswith(DEFAULTS)
    assert NameServerConfig().broker_expiry_ms == 120_000


@pytest.mark.parametrize(
    ("key", "accepted", "refused"),
    [
        ("listenPort", ("0", "65535"), ("-1", "65536")),
        ("addressSharePercent", ("1", "100"), ("0", "101")),
        ("connectionSharePercent", ("1", "100"), ("0", "101")),
        ("scanNotActiveBrokerInterval", ("1", "2147483647"), ("0", "2147483648")),
        ("waitSecondsForService", ("0", "2147483647"), ("-1", "2147483648")),
    ],
)
def test_a_number_is_accepted_within_its_range(
    key: str, accepted: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    for text in accepted:
        assert OPTIONS[key].convert(text) == int(text)
    for text in refused:
        with pytest.raises(ValueError, match="number"):
            OPTIONS[key].convert(text)


def test_a_change_of_one_key_leaves_the_others() -> None:
    changed = updated(NameServerConfig(port=7), "waitSecondsForService=46\nunknown=1")
    assert changed == NameServerConfig(port=7, wait_s=46)


@pytest.mark.parametrize("line", ["listenPort=1", "kvConfigPath=/x", "waitSecondsForService=x"])
def test_a_key_that_is_read_at_the_start_or_a_wrong_value_changes_nothing(line: str) -> None:
    with pytest.raises((ConfigError, ProtectedKeyError)):
        updated(NameServerConfig(), line)
