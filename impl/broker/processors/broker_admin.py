"""Administration of a broker's configuration and state.

See docs/reference/protocol/administration.md, "Administration of a broker".
"""

from dataclasses import replace
from typing import Final

from mqproof.impl.broker import config
from mqproof.impl.broker.services import Processor, Services, loop_ms
from mqproof.impl.broker.state.statistics import Meter
from mqproof.impl.broker.state.topics import DEFAULT_TOPIC
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    PERM_INHERIT,
    PERM_READ_WRITE,
    DataVersion,
    RequestMode,
    RequestModes,
    Table,
)
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import IMPLEMENTATION_KEY, VERSION, VERSION_NAME, Command
from mqproof.impl.remoting.headers import BrokerConfigResponse
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.properties import ConfigError, ProtectedKeyError
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.files import record

PULL: Final = "PULL"
"""The mode in which consumers request messages by offset. The other mode of 5.x is POP."""
_STEPS: Final = (
    *("<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s"),
    *("1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~"),
)
"""RocketMQ's names for the intervals of `flow_control.TOOK_MS`."""


def get_config(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the configuration as the text of a properties file."""
    version = java_json.write(services.config_version).decode()
    host, port = services.address
    # Show the actual address where the configuration leaves it open.
    body = config.show(replace(services.config, advertised_host=host, port=port)).encode()
    return request.answer(ResponseCode.SUCCESS, headers.write(BrokerConfigResponse(version)), body)


async def update_config(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Change the configuration, all of it or nothing; answer after the properties file is written."""
    async with services.config_file.changing:
        old = services.config
        try:
            new = config.updated(old, request.body.decode())
            await services.config_file.keep(config.show(old), config.show(new))
        except ProtectedKeyError as error:
            raise RefusedError(ResponseCode.NO_PERMISSION, str(error)) from None
        except (ConfigError, UnicodeDecodeError, OSError) as error:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        if new.membership.is_member:  # its role may have changed during the write
            new = new.with_role(leads=not services.is_slave)
        services.config = new
    services.store.config = new.store
    services.config_version = DataVersion(services.config_version.counter + 1, now_ms(services.runtime.clock))
    if new.permission != old.permission:
        services.topics.registered_otherwise()
    if new.auto_create_topics:
        # A broker that started without automatic creation has no template topic.
        inherited = PERM_READ_WRITE | PERM_INHERIT
        await services.topics.ensure(DEFAULT_TOPIC, new.default_topic_queues, inherited)
    return request.answer(ResponseCode.SUCCESS)


async def clean(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Delete the expired segments of log, queues and index now, without waiting for the configured hour."""
    await services.store.clean(manually=True)
    return request.answer(ResponseCode.SUCCESS)


def ha_status(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return a master's slaves, or a slave's connection to its master."""
    status = services.ha_status(now_ms(services.runtime.clock))
    if status is None:
        remark = "a member of a DLedger group has neither a master nor slaves"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(status, standard=True))


def set_request_mode(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Accept the mode PULL, in which every group receives its messages; refuse any other."""
    asked = java_json.read(RequestMode, request.body)
    if asked.mode != PULL:
        remark = f"mode {asked.mode} of group {asked.consumer_group} is not supported, {PULL} expected"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    return request.answer(ResponseCode.SUCCESS)


def request_modes(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the groups with another mode than PULL: there are none."""
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(RequestModes({}), standard=True))


def runtime_info(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return RocketMQ's names and values for the identity and the state of the broker."""
    table = {**_identity(services), **_traffic(services), **_waiting(services), **_storage(services)}
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(Table(table), standard=True))


def _identity(services: Services) -> dict[str, str]:
    running_s = loop_ms() // 1000 - services.started_s
    hours, rest = divmod(running_s, 3600)
    return {
        "brokerVersion": str(VERSION),
        "brokerVersionDesc": VERSION_NAME,
        IMPLEMENTATION_KEY: "mqproof",
        "bootTimestamp": str(services.booted_ms),
        "runtime": f"[ {hours // 24} days, {hours % 24} hours, {rest // 60} minutes, {rest % 60} seconds ]",
        "startAcceptSendRequestTimeStamp": "0",
        "brokerActive": "true",
    }


def _traffic(services: Services) -> dict[str, str]:
    stats = services.statistics
    puts, got = stats.puts, stats.messages_got
    return {
        "msgPutTotalYesterdayMorning": str(puts.yesterday_morning),
        "msgPutTotalTodayMorning": str(puts.this_morning),
        "msgPutTotalTodayNow": str(puts.total),
        "msgGetTotalYesterdayMorning": str(got.yesterday_morning),
        "msgGetTotalTodayMorning": str(got.this_morning),
        "msgGetTotalTodayNow": str(got.total),
        "putMessageTimesTotal": str(puts.total),
        "putMessageFailedTimes": str(stats.failed_puts.total),
        "putMessageSizeTotal": str(stats.put_bytes.total),
        "putMessageEntireTimeMax": str(services.sends.took_ms_max),
        "putMessageDistributeTime": " ".join(
            f"[{step}]:{count}" for step, count in zip(_STEPS, services.sends.took, strict=True)
        ),
        "putMessageAverageSize": str(stats.put_bytes.total / puts.total if puts.total else 0.0),
        "putTps": _rates(puts),
        "getFoundTps": _rates(stats.found),
        "getMissTps": _rates(stats.missed),
        "getTotalTps": _rates(stats.found, stats.missed),
        "getTransferedTps": _rates(got),  # the name in 4.9
        "getTransferredTps": _rates(got),  # the name in 5.x, without which exportMetrics fails
    }


def _waiting(services: Services) -> dict[str, str]:
    """Return the queue sizes of a released broker's thread pools.

    This broker queues only sends that wait for the disk.
    """
    waiting_ms = str(services.sends.oldest_ms())
    return {
        "pageCacheLockTimeMills": waiting_ms,
        "sendThreadPoolQueueSize": str(len(services.sends)),
        "sendThreadPoolQueueCapacity": str(services.config.sends_max),
        "sendThreadPoolQueueHeadWaitTimeMills": waiting_ms,
        "pullThreadPoolQueueSize": "0",
        "pullThreadPoolQueueCapacity": str(services.holds.holds_max),
        "pullThreadPoolQueueHeadWaitTimeMills": "0",
        "queryThreadPoolQueueSize": "0",
        "queryThreadPoolQueueCapacity": "0",
        "queryThreadPoolQueueHeadWaitTimeMills": "0",
        "EndTransactionQueueSize": "0",
        "EndTransactionThreadPoolQueueCapacity": "0",
    }


def _storage(services: Services) -> dict[str, str]:
    store = services.store
    first = _first_message(services)
    total_bytes, free_bytes = space = services.runtime.disk.space(services.config.store_directory)
    used_ratio = str(space.used_percent / 100)
    return {
        "commitLogDirCapacity": f"Total : {_size(total_bytes)}, Free : {_size(free_bytes)}.",
        "commitLogDiskRatio": used_ratio,
        "consumeQueueDiskRatio": used_ratio,
        "commitLogMinOffset": str(store.log_begin),
        "commitLogMaxOffset": str(store.log_end),
        "dispatchBehindBytes": str(store.log_end - store.dispatched_end),
        "remainHowManyDataToFlush": str(store.log_end - store.log_flushed),
        "remainHowManyDataToCommit": "0",
        "earliestMessageTimeStamp": str(first.store_timestamp_ms if first else -1),
        **_delays(services),
    }


def _delays(services: Services) -> dict[str, str]:
    """Return, for each level that has delivered, the next offset and the end of the level's queue."""
    return {
        f"scheduleMessageOffset_{level}": f"{offset},{services.store.max_offset(SCHEDULE_TOPIC, level - 1)}"
        for level, offset in services.delays.offsets().offset_table.items()
    }


def _first_message(services: Services) -> StoredMessage | None:
    data = services.store.record_at(services.store.log_begin)
    return record.decode(data) if data else None


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"


def _rates(*meters: Meter) -> str:
    """Return the rates per second over 10 s, 1 min and 10 min."""
    return " ".join(str(sum(rates)) for rates in zip(*(meter.rates() for meter in meters), strict=True))


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.GET_BROKER_CONFIG: get_config,
    RequestCode.UPDATE_BROKER_CONFIG: update_config,
    RequestCode.GET_BROKER_RUNTIME_INFO: runtime_info,
    RequestCode.GET_BROKER_HA_STATUS: ha_status,
    RequestCode.SET_MESSAGE_REQUEST_MODE: set_request_mode,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: request_modes,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: clean,
    RequestCode.CLEAN_UNUSED_TOPIC: clean,
    RequestCode.DELETE_EXPIRED_COMMITLOG: clean,
}
