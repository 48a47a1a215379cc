"""Tests every value of a broker's runtime information.

Source: docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from mqproof.impl.broker.processors.broker_admin import runtime_info
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import Table
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import VERSION, VERSION_NAME, new_request
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.files import record

CHANNEL: Any = None
STEPS = (
    "<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s", "1~2s", "2~3s", "3~4s",
    "4~5s", "5~10s", "10s~",
)  # fmt: skip


def meter(total: int, rate: float) -> Any:
    return SimpleNamespace(
        total=total,
        yesterday_morning=total - 2,
        this_morning=total - 1,
        rates=lambda: (rate, rate * 2, rate * 3),
    )


class Sends:
    """The sends in progress."""

    took_ms_max = 77
    took = range(13)

    def __len__(self) -> int:
        return 3

    def oldest_ms(self) -> int:
        return 700


def services(*, puts: int = 8, has_message: bool = True) -> Any:
    data = record.encode(Message("T", b"x"))
    record.place(data, 0, 100, 123_456)
    records = {100: bytes(data)} if has_message else {}
    return SimpleNamespace(
        started_s=100,
        booted_ms=5000,
        statistics=SimpleNamespace(
            puts=meter(puts, 1.0),
            messages_got=meter(30, 2.0),
            failed_puts=meter(4, 0.0),
            put_bytes=meter(100, 0.0),
            found=meter(5, 4.0),
            missed=meter(6, 8.0),
        ),
        sends=Sends(),
        holds=SimpleNamespace(holds_max=9),
        config=SimpleNamespace(sends_max=10, store_directory="/store"),
        runtime=SimpleNamespace(
            disk=SimpleNamespace(space=lambda path: Space(4 << 30, 1 << 30) if path == "/store" else None)
        ),
        store=SimpleNamespace(
            log_begin=100,
            log_end=1000,
            dispatched_end=990,
            log_flushed=970,
            record_at=records.get,
            max_offset=lambda topic, queue_id: 50 + queue_id if topic == "SCHEDULE_TOPIC_XXXX" else None,
        ),
        delays=SimpleNamespace(offsets=lambda: SimpleNamespace(offset_table={1: 40, 3: 42})),
    )


def table(given: Any, running_s: float = 0) -> dict[str, str]:
    async def main() -> bytes:
        await asyncio.sleep(100 + running_s)
        answer: Any = runtime_info(given, new_request(RequestCode.GET_BROKER_RUNTIME_INFO), CHANNEL)
        return bytes(answer.body)

    body = run_simulated(main(), SimulatedLoop())
    assert b"\\/" in body or b"/" not in body, "the body is standard JSON"
    return java_json.read(Table, body).table


def test_the_identity_shows_the_version_and_how_long_the_broker_has_run() -> None:
    shown = table(services(), 86_400 + 2 * 3600 + 3 * 60 + 4.9)
    assert shown["runtime"] == "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"
    assert table(services())["runtime"] == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"
    assert (shown["brokerVersion"], shown["brokerVersionDesc"]) == (str(VERSION), VERSION_NAME)
    assert (shown["implementation"], shown["bootTimestamp"]) == ("mqproof", "5000")
    assert (shown["startAcceptSendRequestTimeStamp"], shown["brokerActive"]) == ("0", "true")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("msgPutTotalYesterdayMorning", "6"),
        ("msgPutTotalTodayMorning", "7"),
        ("msgPutTotalTodayNow", "8"),
        ("msgGetTotalYesterdayMorning", "28"),
        ("msgGetTotalTodayMorning", "29"),
        ("msgGetTotalTodayNow", "30"),
        ("putMessageTimesTotal", "8"),
        ("putMessageFailedTimes", "4"),
        ("putMessageSizeTotal", "100"),
        ("putMessageEntireTimeMax", "77"),
        ("putMessageDistributeTime", " ".join(f"[{step}]:{at}" for at, step in enumerate(STEPS))),
        ("putMessageAverageSize", "12.5"),
        ("putTps", "1.0 2.0 3.0"),
        ("getFoundTps", "4.0 8.0 12.0"),
        ("getMissTps", "8.0 16.0 24.0"),
        ("getTotalTps", "12.0 24.0 36.0"),
        ("getTransferedTps", "2.0 4.0 6.0"),
        ("getTransferredTps", "2.0 4.0 6.0"),
        ("pageCacheLockTimeMills", "700"),
        ("sendThreadPoolQueueSize", "3"),
        ("sendThreadPoolQueueCapacity", "10"),
        ("sendThreadPoolQueueHeadWaitTimeMills", "700"),
        ("pullThreadPoolQueueSize", "0"),
        ("pullThreadPoolQueueCapacity", "9"),
        ("pullThreadPoolQueueHeadWaitTimeMills", "0"),
        ("commitLogDirCapacity", "Total : 4.0 GiB, Free : 1.0 GiB."),
        ("commitLogDiskRatio", "0.75"),
        ("consumeQueueDiskRatio", "0.75"),
        ("commitLogMinOffset", "100"),
        ("commitLogMaxOffset", "1000"),
        ("dispatchBehindBytes", "10"),
        ("remainHowManyDataToFlush", "30"),
        ("remainHowManyDataToCommit", "0"),
        ("earliestMessageTimeStamp", "123456"),
        ("scheduleMessageOffset_1", "40,50"),
        ("scheduleMessageOffset_3", "42,52"),
    ],
)
def test_each_value_has_the_name_of_a_released_broker(name: str, value: str) -> None:
    assert table(services())[name] == value


def test_a_broker_without_messages_has_no_average_and_no_first_message() -> None:
    shown = table(services(puts=0, has_message=False))
    assert shown["putMessageAverageSize"] == "0.0"
    assert shown["earliestMessageTimeStamp"] == "-1"
