"""Each row is measured on a real broker; refused sends and closed connections are reported as errors."""

import asyncio
import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mqproof.conformance.bench import broker, load
from mqproof.conformance.bench.broker import PARTS, Amount, Side, measure, ours, table
from mqproof.conformance.bench.broker_profile import profiles
from mqproof.conformance.bench.copied_brokers import our_copies
from mqproof.conformance.bench.load import Address, LoadError, Messages, percentile

SMALL = Amount(sends=200, seconds=0.2, warm_seconds=0.1, memory_sends=200, recovery_mib=1)


def test_every_row_is_measured_on_our_broker(tmp_path: Path) -> None:
    stages: list[str] = []
    result = measure({"mqproof": Side(ours, our_copies)}, PARTS, SMALL, 1, tmp_path, stages.append)
    rows = {row["row"]: row["sides"]["mqproof"]["median"] for row in result["rows"]}
    assert len(rows) == 27
    assert all(value > 0 for row, value in rows.items() if "refused" not in row)
    assert len(stages) == 6
    assert not list(tmp_path.iterdir())
    shown = table(result)
    assert all(row in shown for row in rows)
    used = {row["row"]: row["generator"] for row in result["rows"]}
    assert all((used[row] > 0) is row.endswith("/s") for row in rows)
    assert "The generator used at most " in shown


def test_rows_with_a_slower_first_side_are_named() -> None:
    def row(name: str, mine: float, theirs: float) -> dict[str, Any]:
        sides = {"mqproof": mine, "Apache": theirs}
        return {
            "row": name,
            "part": "sends",
            "generator": 0.5,
            "sides": {side: {"median": each, "rounds": [each]} for side, each in sides.items()},
        }

    rows = [
        row("fast: sends/s", 20, 10),
        row("slow: sends/s", 10, 20),
        row("late: ms", 2, 1),
        row("early: ms", 1, 2),
    ]
    del rows[0]["sides"]["Apache"]
    missing = ["sends, Apache, round 1: it did not start"]
    shown = table({"machine": "a machine", "rounds": 1, "amount": {}, "rows": rows, "missing": missing})
    behind = shown.split("Rows in which it is not:\n")[1].split("\n")
    assert behind == ["  slow: sends/s (Apache)", "  late: ms (Apache)", f"Missing: {missing[0]}"]
    assert shown.splitlines()[3].split() == ["fast:", "sends/s", "20.0", "-", "-"]


def test_slower_rows_are_profiled(tmp_path: Path) -> None:
    def row(name: str, part: str, mine: float) -> dict[str, object]:
        sides = {"mqproof": [mine], "Apache": [1.5]}
        figures = {side: {"median": rounds[0], "rounds": rounds} for side, rounds in sides.items()}
        return {"row": name, "part": part, "sides": figures}

    rows = [
        row("fast: sends/s", "sends", 2.0),
        row("slow: sends/s", "topics", 1.0),
        row("start: s", "recovery", 2.0),
    ]
    result = {"rows": rows}
    stages: list[str] = []
    text = profiles(result, SMALL, tmp_path, stages.append)
    assert stages == ["profile of topics"]
    assert text.startswith("Our broker's time in: slow: sends/s")
    assert "/impl/" in text


def test_refused_sends_give_no_rate(tmp_path: Path) -> None:
    with ours(tmp_path, "ASYNC_FLUSH") as broker, pytest.raises(LoadError, match="code 13"):
        asyncio.run(load.send_rate(broker.address, Messages(size=5 << 20), 1, 1))


def test_a_broker_that_closes_the_connection_is_reported() -> None:
    async def rate() -> None:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            await load.send_rate(Address(host, port), Messages(size=8), 10, 2)

    with pytest.raises(LoadError, match="closed the connection"):
        asyncio.run(rate())


@pytest.mark.parametrize("busy_of_three", [1, 3])
def test_a_busy_broker_receives_further_sends_up_to_a_limit(busy_of_three: int) -> None:
    """If every third send is refused with SYSTEM_BUSY, the others are stored; if all are, none is stored."""
    answered: list[int] = []
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                opaque = json.loads(frame[4 : 4 + int.from_bytes(frame[1:4], "big")])["opaque"]
                answered.append(2 if len(answered) % 3 < busy_of_three else 0)
                header = json.dumps({"code": answered[-1], "opaque": opaque, "flag": 1}).encode()
                writer.write(struct.pack(">ii", 4 + len(header), len(header)) + header)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        gone.set()

    async def rate() -> float:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            try:
                return await load.send_rate(Address(host, port), Messages(size=8), 30, 2)
            finally:
                await gone.wait()

    if busy_of_three == 3:
        with pytest.raises(LoadError, match="code 2"):
            asyncio.run(rate())
    else:
        assert asyncio.run(rate()) > 0
        assert answered.count(0) == 30


def test_missing_messages_are_reported_and_not_awaited_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "STALL_S", 0.5)

    async def pulls(address: Address) -> None:
        messages = Messages(queues=1, size=8)
        await load.create_topics(address, messages)
        await load.send_rate(address, messages, 7, 2)
        await load.pull_rate(address, messages, 8)

    with (
        ours(tmp_path, "ASYNC_FLUSH") as broker,
        pytest.raises(LoadError, match=r"7 of 8 .* nothing more for 0.5 s"),
    ):
        asyncio.run(pulls(broker.address))


def test_a_broker_that_stops_answering_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "STALL_S", 0.05)

    async def rate() -> None:
        gone = [asyncio.Event() for _ in range(2)]
        left = list(gone)

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                await reader.read(-1)
            writer.close()
            left.pop().set()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            try:
                await load.send_rate(Address(host, port), Messages(size=8), 10, 2, connections=2)
            finally:
                for one in gone:
                    await one.wait()

    with pytest.raises(LoadError, match=r"0 of 10 sends were answered, and nothing more for 0.05 s"):
        asyncio.run(rate())


def test_a_server_that_does_not_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(broker.BenchError, match="NO_SUCH_FLUSH"), ours(tmp_path, "NO_SUCH_FLUSH"):
        pass


def test_a_percentile_is_one_of_the_measured_values() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(1, 101)], 0.99) == 100.0
    assert percentile([1.0], 0.99) == 1.0
