"""Every setting of a broker: its default, its bounds, and its change while the broker runs.

See docs/how-to/broker.md, "Configuration", and docs/reference/protocol/administration.md, "Configuration of a
broker".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.hosts.simulated import MASTER, NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame
from mqproof.impl.broker import config as broker_config
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.store.delay import LEVELS

_MAX: Final = 2**31 - 1
_FILE: Final = "/broker.properties"
_NAMES_FILE: Final = "/names.properties"
_TEXT_OF_FILE: Final = "# a comment\nregionId = R\\\n  1\nunknown=7\n"


@dataclass(frozen=True, slots=True)
class _Key:
    """A setting: its default, values that it accepts, and values that it refuses."""

    name: str
    default: str
    good: tuple[str, ...]
    bad: tuple[str, ...] = ()
    is_running: bool = False
    """Whether it changes while the server runs."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """How values are shown that are not shown as they were written."""


def _number(name: str, default: int, low: int = 1, high: int = _MAX, *, running: bool = False) -> _Key:
    bad = ("", "x", "-1", "1.5", str(high + 1), *([str(low - 1)] if low else []))
    return _Key(name, str(default), (str(low), str(high), str(default)), bad, running)


def _switch(name: str, default: bool, *, running: bool = False) -> _Key:
    shown = {"True": "true"}
    return _Key(name, str(default).lower(), ("true", "false", "True"), ("", "yes", "1"), running, shown)


def _text(name: str, default: str, *, running: bool = False) -> _Key:
    return _Key(name, default, ("some_text",), ("",), running)


def _percent(name: str, default: int) -> _Key:
    shown = {"0.5": "50", "0.855": "85", "0.01": "1", "0.99": "99"}
    return _Key(name, str(default), ("1", "100", *shown), ("0", "101", "x", "0.00"), True, shown)


_BROKER: Final = (
    _text("brokerName", "broker-a"),
    _text("brokerClusterName", "DefaultCluster"),
    _Key("brokerId", "0", ("0", "1", str(_MAX)), ("-1", "x", str(_MAX + 1))),
    _Key("brokerIP1", "", ("10.0.0.3", "2001:db8::1"), ("host", "0.0.0.0", "")),
    _number("listenPort", 10911, 0, 65535),
    _Key(
        "namesrvAddr", "", ("10.0.0.1:9876", "10.0.0.1:9876;10.0.0.2:9876", "http://10.0.0.1:80/rocketmq"),
        ("10.0.0.1", "10.0.0.1:x", "10.0.0.1:65536", "ftp://10.0.0.1:80/x"),
    ),
    _text("storePathRootDir", "store"),
    _switch("autoCreateTopicEnable", True, running=True),
    _switch("autoCreateSubscriptionGroup", True, running=True),
    _number("defaultTopicQueueNums", 8, 1, 1024),
    _number("flushConsumerOffsetInterval", 5000),
    _number("flushDelayOffsetInterval", 10_000),
    _number("registerNameServerPeriod", 30_000, 10_000, 60_000),
    _number("maxTransferCountOnMessageInMemory", 32, 1, 32_768, running=True),
    _number("maxTransferBytesOnMessageInMemory", 262_144, 1, 8 << 20, running=True),
    _number("maxTransferCountOnMessageInDisk", 8, 1, 32_768, running=True),
    _number("maxTransferBytesOnMessageInDisk", 65_536, 1, 8 << 20, running=True),
    _number("accessMessageInMemoryMaxRatio", 40, 1, 100, running=True),
    _switch("slaveReadEnable", False, running=True),
    _number("brokerPermission", 6, 0, 7, running=True),
    _text("regionId", "DefaultRegion", running=True),
    _switch("traceOn", True, running=True),
    _switch("traceTopicEnable", False),
    _Key("aclEnable", "false", ("false",), ("yes",)),
    _Key("aclFile", "", ("/accounts.yml", "")),
    _number("sendThreadPoolQueueCapacity", 10_000),
    _number("osPageCacheBusyTimeOutMills", 1000),
    _number("pullThreadPoolQueueCapacity", 100_000, 1, 10_000_000),
    _number("addressSharePercent", 50, 1, 100),
    _number("connectionSharePercent", 10, 1, 100),
    _switch("enablePropertyFilter", False, running=True),
    _switch("filterServerEnable", False, running=True),
    _switch("longPollingEnable", True, running=True),
    _number("shortPollingTimeMills", 1000, running=True),
    _switch("storeReplyMessageEnable", True, running=True),
    _switch("rejectTransactionMessage", False, running=True),
    _number("transactionTimeOut", 6000, running=True),
    _number("transactionCheckInterval", 30_000, running=True),
    _number("transactionCheckMax", 15, running=True),
    _number("transactionOpBatchInterval", 3000),
    _number("transactionsOpenMax", 100_000, running=True),
    _switch("timerWheelEnable", True, running=True),
    _number("timerMaxDelaySec", 259_200, running=True),
    _number("timersWaitingMax", 500_000, 1, 10_000_000, running=True),
    _switch("recallMessageEnable", True, running=True),
    _Key("flushDiskType", "ASYNC_FLUSH", ("SYNC_FLUSH", "ASYNC_FLUSH"), ("", "SYNC")),
    _number("mappedFileSizeCommitLog", 1 << 30, 1024),
    _Key(
        "mappedFileSizeConsumeQueue", "6000000", ("20", "6000000", "21", "40"), ("19", str(_MAX + 1)),
        shown={"21": "40"},
    ),
    _switch("messageIndexEnable", True),
    _number("maxHashSlotNum", 5_000_000),
    _number("maxIndexNum", 20_000_000, 2),
    _number("maxMessageSize", 4 << 20, 1, 64 << 20, running=True),
    _number("syncFlushTimeout", 5000, running=True),
    _number("flushIntervalCommitLog", 500),
    _number("flushCommitLogThoroughInterval", 10_000),
    _number("flushIntervalConsumeQueue", 1000),
    _number("flushConsumeQueueThoroughInterval", 5000),
    _Key(
        "deleteWhen", "4", ("04", "0", "23", "4;16", "00;12;23"), ("", "24", "4;24", "x", "4;x", "4;"), True,
        {"04": "4", "00;12;23": "0;12;23"},
    ),
    _Key("fileReservedTime", "72", ("1", "1000000", "48"), ("0", "1000001", "x"), True),
    _number("diskMaxUsedSpaceRatio", 75, 1, 100, running=True),
    _percent("diskSpaceCleanForciblyRatio", 85),
    _percent("diskSpaceWarningLevelRatio", 90),
    _switch("cleanFileForciblyEnable", True, running=True),
    _number("cleanResourceInterval", 10_000),
    _switch("scrubEnable", True),
    _number("scrubBytesPerSecond", 1 << 20),
    _number("scrubInterval", 86_400_000),
    _Key(
        "messageDelayLevel",
        "1s 5s 10s 30s 60s 120s 180s 240s 300s 360s 420s 480s 540s 600s 1200s 1800s 3600s 7200s",
        (LEVELS, "1s 1m 2h 1d", "7s"), ("", "1", "1x", "s", "1s 2"),
        shown={
            LEVELS: "1s 5s 10s 30s 60s 120s 180s 240s 300s 360s 420s 480s 540s 600s 1200s 1800s 3600s 7200s",
            "1s 1m 2h 1d": "1s 60s 7200s 86400s",
        },
    ),
    _Key("haLogCheck", "COMPARED", ("COMPARED", "AS_SHIPPED"), ("", "x")),
    _number("haSlaveFallbehindMax", 256 << 20),
    _number("slaveTimeout", 3000),
    _number("haSendHeartbeatInterval", 5000),
    _number("haHousekeepingInterval", 20_000),
    _Key("metricsExporterType", "DISABLE", ("PROM", "DISABLE"), ("", "OTLP")),
    _text("metricsPromExporterHost", "127.0.0.1"),
    _number("metricsPromExporterPort", 5557, 0, 65535),
)  # fmt: skip
"""The settings that a broker shows in any case."""
_ONLY_IF_SET: Final = (
    _Key("brokerRole", "", ("ASYNC_MASTER", "SYNC_MASTER"), ("", "MASTER", "SLAVE")),
    _number("haListenPort", 0, 0, 65535),
    _Key("haMasterAddress", "", ("10.0.0.1:10912",), ("10.0.0.1", "x:y")),
    _number("inSyncReplicas", 1, 1, 64),
    _Key("peerSecretFile", "", ("/peer.secret",)),
    _Key("peerAddresses", "", ("10.0.0.1;10.0.0.2", "2001:db8::1"), ("host",)),
)
_TOGETHER: Final = (
    ("aclEnable=true\nbrokerRole=SYNC_MASTER\n", False),
    ("aclEnable=true\nbrokerRole=ASYNC_MASTER\npeerAddresses=10.0.0.1\n", True),
    ("aclEnable=true\nbrokerRole=SYNC_MASTER\npeerSecretFile=/s\n", True),
    ("aclEnable=true\n", True),
    ("brokerRole=SYNC_MASTER\npeerSecretFile=/s\nhaLogCheck=AS_SHIPPED\n", False),
    ("brokerRole=SYNC_MASTER\nhaLogCheck=AS_SHIPPED\n", True),
    ("peerSecretFile=/s\nhaLogCheck=AS_SHIPPED\n", True),
    ("brokerRole=SLAVE\nbrokerId=0\n", False),
    ("brokerRole=SLAVE\nbrokerId=1\n", True),
    ("brokerRole=SYNC_MASTER\nbrokerId=1\n", False),
    ("enableDLegerCommitLog=true\ndLegerSelfId=n0\ndLegerPeers=n0-10.0.0.1:40911;n1-10.0.0.2:40911\n", True),
    ("enableDLegerCommitLog=true\ndLegerSelfId=n2\ndLegerPeers=n0-10.0.0.1:40911;n1-10.0.0.2:40911\n", False),
    ("enableDLegerCommitLog=true\ndLegerSelfId=n0\ndLegerPeers=n0-10.0.0.1:40911;n0-10.0.0.2:40911\n", False),
    ("enableDLegerCommitLog=true\ndLegerSelfId=n0\ndLegerPeers=n0-10.0.0.1:40911;n1-10.0.0.1:40911\n", False),
    (
        "enableDLegerCommitLog=true\ndLegerGroup=g\ndLegerSelfId=n0\ndLegerPeers=n0-10.0.0.1:40911\n"
        "preferredLeaderIds=n0\n", True,
    ),
    (
        "enableDLegerCommitLog=true\ndLegerSelfId=n0\ndLegerPeers=n0-10.0.0.1:40911\npreferredLeaderIds=n1\n",
        False,
    ),
)  # fmt: skip
"""Settings that are possible together, or not."""

_NAME_SERVER: Final = (
    _number("listenPort", 9876, 0, 65535),
    _Key("aclEnable", "false", ()),
    _Key("aclFile", "", ()),
    _number("addressSharePercent", 50, 1, 100),
    _number("connectionSharePercent", 10, 1, 100),
    _number("scanNotActiveBrokerInterval", 10_000, running=True),
    _switch("orderMessageEnable", False, running=True),
    _switch("returnOrderTopicConfigToBroker", True, running=True),
    _switch("supportActingMaster", False, running=True),
    _switch("needWaitForService", False, running=True),
    _number("waitSecondsForService", 45, 0, running=True),
    _switch("enableTopicList", True, running=True),
    _switch("enableAllTopicList", True, running=True),
    _switch("deleteTopicWithBrokerRegistration", False, running=True),
    _Key("metricsExporterType", "DISABLE", ()),
    _Key("metricsPromExporterHost", "127.0.0.1", ()),
    _Key("metricsPromExporterPort", "5557", ()),
)
_NAME_SERVER_PROTECTED: Final = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")
_PROTECTED: Final = ("brokerConfigPath", "configBlackList", "rocketmqHome")


def lines(text: bytes | str) -> dict[str, str]:
    """Return the lines `key=value`."""
    found = text.decode() if isinstance(text, bytes) else text
    return dict(line.split("=", 1) for line in found.splitlines() if "=" in line)


async def of_a_broker(site: Site) -> None:
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    first = await site.ask("GET_BROKER_CONFIG")
    version = _counter(first.fields.get("version", ""))
    site.compare("the version of the settings at the start", 0, version)
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    site.compare("the time of that version", int(table["bootTimestamp"]), _changed_ms(first))
    expected = {each.name: each.default for each in _BROKER} | {
        "brokerIP1": site.broker.host,
        "listenPort": str(site.broker.port),
        "namesrvAddr": ";".join(map(str, site.cluster.names)),
        "storePathRootDir": "/store",
    }
    _compare(site, "the settings", expected, lines(first.body))
    _of_a_file(site, expected)
    for key in _BROKER:
        if not key.is_running:
            await site.ask("UPDATE_BROKER_CONFIG", f"{key.name}={key.default}", expects=1)
            continue
        for value in key.bad:
            await site.ask("UPDATE_BROKER_CONFIG", f"regionId=changed\n{key.name}={value}", expects=1)
        for value in key.good:
            await site.ask("UPDATE_BROKER_CONFIG", f"{key.name}={value}\nunknownKey=7\n")
            version += 1
        changed_ms = site.now_ms
        expected[key.name] = key.shown.get(key.good[-1], key.good[-1])
        answer = await site.ask("GET_BROKER_CONFIG")
        _compare(site, f"the settings after a change of {key.name}", expected, lines(answer.body))
        site.compare(f"the time of a change of {key.name}", changed_ms, _changed_ms(answer))
    for name in _PROTECTED:
        await site.ask("UPDATE_BROKER_CONFIG", f"traceOn=false\n{name}=x", expects=16)
    for wrong in (b"no separator", b"\xff=1"):
        await site.ask("UPDATE_BROKER_CONFIG", wrong, expects=1)
    last = await site.ask("GET_BROKER_CONFIG")
    _compare(site, "the settings at the end", expected, lines(last.body))
    site.compare("the version of the settings", version, _counter(last.fields.get("version", "")))
    written = site.cluster.machines[MASTER].disk.written(_FILE).decode()
    site.compare("the comment of the file", True, written.startswith("# a comment\n"))
    kept = lines(written)
    site.compare("another line of the file", "7", kept.pop("unknown", None))
    changed = {each.name: expected[each.name] for each in _BROKER if each.is_running and each.name in kept}
    site.compare("the changes in the file", changed, kept)
    differ = {each.name for each in _BROKER if each.is_running and expected[each.name] != each.default}
    site.compare("the changes that the file lacks", set(), differ - kept.keys())
    try:
        await site.client("of a released slave", to=Address(site.broker.host, site.broker.port - 2))
    except OSError:
        return
    site.report("a broker without replication listens on a second port")


def _compare(site: Site, what: str, expected: Mapping[str, str], observed: Mapping[str, str]) -> None:
    for name in expected.keys() | observed.keys():
        site.compare(f"{name} in {what}", expected.get(name), observed.get(name))


def _counter(version: str) -> int:
    return int(java_values.read(version)["counter"])


def _changed_ms(answer: Frame) -> int:
    return int(java_values.read(answer.fields["version"])["timestamp"])


def _of_a_file(site: Site, expected: Mapping[str, str]) -> None:
    """Read each value from a file, as at a start, and compare it with what the broker then shows."""
    for key in (*_BROKER, *_ONLY_IF_SET):
        for value in key.good:
            more = "brokerRole=SLAVE\n" if key.name == "brokerId" and value != "0" else ""
            shown = _shown(f"{more}{key.name} = {value}\n")
            site.compare(f"{key.name}={value}", key.shown.get(value, value), shown and shown.get(key.name))
            others = {name for name in shown or {} if (shown or {})[name] != expected.get(name)}
            left = others - {key.name, "brokerRole", *_OF_THE_SITE}
            site.compare(f"other settings after {key.name}={value}", set(), left)
        for value in key.bad:
            site.compare(f"{key.name}={value}", None, _shown(f"{key.name}={value}\n"))
    for text, is_possible in _TOGETHER:
        found = _shown(text)
        site.compare(f"whether {text!r} is possible", is_possible, found is not None)
        for name, value in lines(text).items() if found else ():
            site.compare(f"{name} of {text!r}", value, (found or {}).get(name))
    _, unknown = broker_config.read("brokerName=b\nanother=1\nflushDiskType: SYNC_FLUSH\n", "file")
    site.compare("the unknown keys", ("another",), unknown)


_OF_THE_SITE: Final = ("brokerIP1", "listenPort", "namesrvAddr", "storePathRootDir")


def _shown(text: str) -> dict[str, str] | None:
    """Return what a broker with this file shows; None if it does not start."""
    try:
        config, _ = broker_config.read(text, "file")
    except (ConfigError, ValueError):
        return None
    return lines(broker_config.show(config))


async def of_a_name_server(site: Site) -> None:
    site.rule = chapters.NAME_SERVER
    to = site.name_server
    expected = {each.name: each.default for each in _NAME_SERVER} | {"kvConfigPath": "/names/kvConfig.json"}
    _compare(site, "the settings", expected, lines((await site.ask("GET_NAMESRV_CONFIG", to=to)).body))
    for key in _NAME_SERVER:
        if not key.is_running:
            await site.ask("UPDATE_NAMESRV_CONFIG", f"{key.name}={key.default}", expects=1, to=to)
            continue
        for value in key.bad:
            text = f"orderMessageEnable=true\n{key.name}={value}"
            await site.ask("UPDATE_NAMESRV_CONFIG", text, expects=1, to=to)
        for value in _to_the_default(key):
            await site.ask("UPDATE_NAMESRV_CONFIG", f"{key.name}={value}\nunknown=7\n", to=to)
            expected[key.name] = key.shown.get(value, value)
            shown = lines((await site.ask("GET_NAMESRV_CONFIG", to=to)).body)
            _compare(site, f"the settings after {key.name}={value}", expected, shown)
    for name in _NAME_SERVER_PROTECTED:
        await site.ask("UPDATE_NAMESRV_CONFIG", f"orderMessageEnable=true\n{name}=x", expects=16, to=to)
    for wrong in (b"no separator", b"\xff=1"):
        await site.ask("UPDATE_NAMESRV_CONFIG", wrong, expects=1, to=to)
    _compare(site, "the settings", expected, lines((await site.ask("GET_NAMESRV_CONFIG", to=to)).body))
    kept = lines(site.cluster.machines[NAME_SERVERS[0]].disk.written(_NAMES_FILE))
    site.compare("another line of the file", "7", kept.pop("unknown", None))
    running = {each.name: each.default for each in _NAME_SERVER if each.is_running}
    site.compare("the changes in the file", running, kept)


def _to_the_default(key: _Key) -> Iterable[str]:
    """Yield other values, and the default last."""
    yield from (value for value in key.good if key.shown.get(value, value) != key.default)
    yield key.default


_OWN: Final[dict[str, Any]] = {"config_path": _FILE}
SETTINGS: Final = Inspection("settings", of_a_broker, _OWN, files={_FILE: _TEXT_OF_FILE}, properties="")
NAME_SERVER_SETTINGS: Final = Inspection(
    "name server settings", of_a_name_server, name_server={"config_path": _NAMES_FILE},
    name_server_files={_NAMES_FILE: "unknown=7\n"},
)  # fmt: skip
