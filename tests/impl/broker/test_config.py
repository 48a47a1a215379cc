"""Tests a broker's properties file: the supported keys, and the reports of mistakes."""

import re
from pathlib import Path

import pytest

from mqproof.impl.broker.config import (
    MEMBERSHIP_OPTIONS,
    OPTIONS,
    PEER_OPTIONS,
    REPLICATION_OPTIONS,
    RUNNING_KEYS,
    STORE_OPTIONS,
    BrokerConfig,
    read,
    show,
    updated,
    with_changes,
)
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.store.config import FlushMode

_GROUP = "enableDLegerCommitLog=true\ndLegerPeers=n0-h:1;n1-h:2"


def test_known_keys_become_fields() -> None:
    config, unknown = read(
        """
        # a comment
        brokerName = b-1
        brokerClusterName: C
        listenPort=0
        namesrvAddr=10.0.0.1:9876;10.0.0.2:9876
        flushDiskType=SYNC_FLUSH
        mappedFileSizeConsumeQueue=101
        autoCreateTopicEnable=FALSE
        storePathRootDir=/data/\\
          store
        """,
        "broker.conf",
    )
    assert unknown == ()
    assert (config.name, config.cluster, config.port) == ("b-1", "C", 0)
    assert config.name_servers == (Address("10.0.0.1", 9876), Address("10.0.0.2", 9876))
    assert config.store.flush_mode is FlushMode.SYNC_FLUSH
    assert config.store.consume_queue_segment_bytes == 120  # rounded up to whole units
    assert not config.auto_create_topics
    assert config.store_directory == "/data/store"


def test_the_page_has_every_key_with_its_default_and_when_it_takes_effect() -> None:
    """The pages are docs/how-to/broker.md and, for replication, replication.md and dledger-group.md."""
    docs = Path(__file__).parents[3] / "docs"
    page = (docs / "how-to" / "broker.md").read_text(encoding="utf-8").partition("## Administration")[0]
    running, at_start = (
        dict(re.findall(r"^\| (\w+) \| (.*?) ?\| ", part, re.MULTILINE)[1:])
        for part in page.partition("These keys are read at the start only:")[::2]
    )
    assert set(running) == RUNNING_KEYS
    shown = dict(line.split("=", 1) for line in show(BrokerConfig()).splitlines())
    reported = {**running, **at_start}
    in_other_page = {*REPLICATION_OPTIONS, *MEMBERSHIP_OPTIONS, *PEER_OPTIONS} - set(reported)
    assert set(reported) | in_other_page == {
        *OPTIONS,
        *STORE_OPTIONS,
        *REPLICATION_OPTIONS,
        *MEMBERSHIP_OPTIONS,
        *PEER_OPTIONS,
    }
    pages = (docs / "explanation" / f"{name}.md" for name in ("replication", "dledger-group"))
    replication = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [key for key in in_other_page if key not in replication] == []
    different = {key: (value, shown[key]) for key, value in reported.items() if value != shown[key]}
    assert different == {}


def test_unknown_keys_are_reported_and_change_nothing() -> None:
    config, unknown = read("haServiceClass=10912\nrejectPullConsumerEnable=3000\n", "f")
    assert config == BrokerConfig()
    assert unknown == ("haServiceClass", "rejectPullConsumerEnable")


def test_expiry_settings_have_the_format_of_released_brokers() -> None:
    text = "deleteWhen=04;16\nfileReservedTime=48\ndiskSpaceCleanForciblyRatio=0.8\n"
    store = read(text + "diskSpaceWarningLevelRatio=95\n", "f")[0].store
    assert (store.delete_when_hours, store.file_reserved_ms) == ((4, 16), 48 * 3_600_000)
    assert (store.disk_forcibly_percent, store.disk_warning_percent) == (80, 95)


def test_each_hour_of_a_day_is_accepted() -> None:
    assert read("deleteWhen=00;23\n", "f")[0].store.delete_when_hours == (0, 23)


@pytest.mark.parametrize("hours", ["24", "4;24", "x", "4;x", "04,16", ";"])
def test_invalid_hours_are_refused(hours: str) -> None:
    with pytest.raises(ConfigError, match="hours from 00 to 23"):
        read(f"deleteWhen={hours}\n", "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nbrokerName", "f:2: 'brokerName' has no '=', KEY=VALUE expected"),
        ("listenPort=x", "f:1: listenPort is 'x', a whole number from 0 to 65535 expected"),
        ("listenPort=70000", "f:1: listenPort is '70000', a whole number from 0 to 65535 expected"),
        ("#\nflushDiskType=ASYNC", "f:2: flushDiskType is 'ASYNC', SYNC_FLUSH or ASYNC_FLUSH expected"),
        ("autoCreateTopicEnable=yes", "f:1: autoCreateTopicEnable is 'yes', true or false expected"),
        ("namesrvAddr=host", "f:1: namesrvAddr is 'host', HOST:PORT, several separated by ';', or"),
        ("brokerIP1=here", "f:1: brokerIP1 is 'here', a numeric IP address expected"),
        ("brokerName=", "f:1: brokerName is '', some text expected"),
        ("dLegerPeers=n0", "f:1: dLegerPeers is 'n0', n0-HOST:PORT, one for each member, separated by ';',"),
        ("dLegerPeers=a-h:1", "f:1: dLegerPeers is 'a-h:1', n0-HOST:PORT, one for each member"),
        ("enableDLegerCommitLog=true", "dLegerSelfId is '', dLegerPeers names no member"),
        (f"{_GROUP}\ndLegerSelfId=n7", "dLegerSelfId is 'n7', dLegerPeers names n0, n1"),
        (f"{_GROUP};n1-h:3\ndLegerSelfId=n0", "dLegerPeers names one of n0, n1, n1 twice"),
        (f"{_GROUP};n2-h:1\ndLegerSelfId=n0", "dLegerPeers has two members at one address"),
        (
            f"{_GROUP}\ndLegerSelfId=n0\npreferredLeaderIds=n1;n9",
            "preferredLeaderIds names 'n9', dLegerPeers",
        ),
        ("registerNameServerPeriod=1", "f:1: registerNameServerPeriod is '1', a whole number from 10000"),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, "f")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_member_starts_as_a_slave_until_its_group_elects_it() -> None:
    config, unknown = read(f"{_GROUP}\ndLegerSelfId=n1\nbrokerName=a", "f")
    assert unknown == ()
    assert config.node == "a-n1"
    group = config.group
    assert (group.group, group.self_id, group.members) == ("a", "n1", ("n0", "n1"))
    follows, leads = config.with_role(leads=False), config.with_role(leads=True)
    assert (follows.broker_id, follows.replication.is_slave) == (2, True)
    assert (leads.broker_id, leads.replication.is_slave) == (0, False)
    shown = show(config).splitlines()
    assert {"dLegerPeers=n0-h:1;n1-h:2", "dLegerSelfId=n1", "enableDLegerCommitLog=true"} <= set(shown)


def test_a_change_over_the_network_does_not_change_the_role_of_a_member() -> None:
    config, _ = read(f"{_GROUP}\ndLegerSelfId=n1", "f")
    changed = updated(config.with_role(leads=True), "traceOn=false")
    assert changed.broker_id == 0


def test_changes_reach_the_broker_and_its_store_and_an_empty_change_has_no_effect() -> None:
    config = with_changes(BrokerConfig(), {"name": "x", "flush_mode": FlushMode.SYNC_FLUSH, "port": None})
    assert (config.name, config.store.flush_mode, config.port) == ("x", FlushMode.SYNC_FLUSH, 10911)


def test_listening_on_all_addresses_needs_an_address_to_advertise() -> None:
    with pytest.raises(ConfigError, match="brokerIP1"):
        with_changes(BrokerConfig(), {"host": "0.0.0.0"})
    with_changes(BrokerConfig(), {"host": "0.0.0.0", "advertised_host": "10.0.0.1"})


def test_the_limits_without_a_key_are_those_that_the_pages_state() -> None:
    config = BrokerConfig()
    assert (config.topics_max, config.groups_max, config.topic_queues_max) == (50_000, 50_000, 1024)
    assert (config.offset_pairs_max, config.sends_bytes_max) == (1_000_000, 268_435_456)
    assert (config.queue_lock_ms, config.client_expiry_ms) == (60_000, 120_000)


def test_the_text_of_a_configuration_has_the_keys_that_it_uses() -> None:
    default = {line.partition("=")[0] for line in show(BrokerConfig()).splitlines()}
    assert default & {*MEMBERSHIP_OPTIONS, *PEER_OPTIONS, "brokerRole", "haMasterAddress"} == set()
    assert default >= {*OPTIONS, *STORE_OPTIONS}
    text = "brokerRole=SLAVE\nbrokerId=1\nhaMasterAddress=h:7\npeerSecretFile=/s\npeerAddresses=10.0.0.1\n"
    config, _ = read(text, "f")
    assert set(text.splitlines()) <= set(show(config).splitlines())


_MS_KEYS = (
    *("flushConsumerOffsetInterval", "flushDelayOffsetInterval", "osPageCacheBusyTimeOutMills"),
    *("shortPollingTimeMills", "transactionTimeOut", "transactionCheckInterval"),
    *("transactionOpBatchInterval", "syncFlushTimeout", "flushIntervalCommitLog"),
    *("flushCommitLogThoroughInterval", "flushIntervalConsumeQueue", "flushConsumeQueueThoroughInterval"),
    *("cleanResourceInterval", "scrubInterval", "slaveTimeout", "haSendHeartbeatInterval"),
    "haHousekeepingInterval",
)
_LIMITS = {
    (0, 7): ("brokerPermission",),
    (0, 65_535): ("listenPort", "haListenPort"),
    (1, 64): ("inSyncReplicas",),
    (1, 100): (
        *("accessMessageInMemoryMaxRatio", "addressSharePercent", "connectionSharePercent"),
        *("diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio", "diskSpaceWarningLevelRatio"),
    ),
    (1, 1024): ("defaultTopicQueueNums",),
    (1, 32_768): ("maxTransferCountOnMessageInMemory", "maxTransferCountOnMessageInDisk"),
    (1, 1_000_000): ("fileReservedTime",),
    (1, 8_388_608): ("maxTransferBytesOnMessageInMemory", "maxTransferBytesOnMessageInDisk"),
    (1, 10_000_000): ("pullThreadPoolQueueCapacity", "timersWaitingMax"),
    (1, 67_108_864): ("maxMessageSize",),
    (1, 2_147_483_647): (
        *("sendThreadPoolQueueCapacity", "transactionCheckMax", "transactionsOpenMax", "timerMaxDelaySec"),
        *("maxHashSlotNum", "scrubBytesPerSecond", "haSlaveFallbehindMax"),
        *_MS_KEYS,
    ),
    (2, 2_147_483_647): ("maxIndexNum",),
    (20, 2_147_483_640): ("mappedFileSizeConsumeQueue",),
    (1024, 2_147_483_647): ("mappedFileSizeCommitLog",),
    (10_000, 60_000): ("registerNameServerPeriod",),
}
"""The keys with whole numbers, by their least and most."""


@pytest.mark.parametrize(
    ("key", "least", "most"), [(key, *limits) for limits, keys in _LIMITS.items() for key in keys]
)
def test_a_number_is_accepted_at_its_limits_and_refused_beyond_them(key: str, least: int, most: int) -> None:
    for value in (least, most):
        config, unknown = read(f"{key}={value}", "f")
        assert unknown == ()
        assert f"{key}={value}" in show(config).splitlines()
    beyond = 2_147_483_648 if key == "mappedFileSizeConsumeQueue" else most + 1
    for refused in (least - 1, beyond):
        with pytest.raises(ConfigError, match=f"{key} is '{refused}', a whole number from {least} to "):
            read(f"{key}={refused}", "f")


@pytest.mark.parametrize(
    ("ratio", "percent"), [("0.85", 85), ("0.5", 50), ("0.05", 5), ("0.999", 99), ("85", 85), ("100", 100)]
)
def test_a_ratio_may_be_a_fraction_or_a_percentage(ratio: str, percent: int) -> None:
    config, _ = read(f"diskSpaceWarningLevelRatio={ratio}", "f")
    assert config.store.disk_warning_percent == percent


@pytest.mark.parametrize(("ratio", "words"), [("0.00", "1 to 99"), ("0.", "1 to 99"), ("1.0", "1 to 100")])
def test_a_ratio_of_nothing_is_refused(ratio: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"a whole number from {words}"):
        read(f"diskSpaceWarningLevelRatio={ratio}", "f")
