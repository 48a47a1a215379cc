"""Goal: docs/reference/event-log.md is correct.

Method: validate the example rows and the output of the example program. Compare the events of our own
nodes with the tables.
"""

import asyncio
import random
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqproof import Producer, PushConsumer, ReceivedMessage, RetryLater, connect, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig
from mqproof.fuzz.raft import event_log
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.clock import SystemClock
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.spec.events import COLUMNS, REQUIRED, SCHEMA_VERSION, Event, Kind, decode, read_log

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "event-log.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))


@dataclass(frozen=True)
class Writer:
    """One row in the table of an event kind: the columns that a kind of node must fill and may fill."""

    must: frozenset[str]
    may: frozenset[str]

    def accepts(self, event: Event) -> bool:
        return self.must <= filled(event) <= self.must | self.may


def writers(kind: str) -> list[Writer]:
    rows = re.findall(r"^\| (.*?) \| (.*?) \|(.*?)\|$", SECTIONS[kind], re.MULTILINE)
    assert rows[0][0] == "written by"
    return [Writer(names(must), names(may)) for _, must, may in rows[1:] if must.strip("-")]


def names(text: str) -> frozenset[str]:
    known = {name for name in COLUMNS if name not in REQUIRED}
    return frozenset(name for name in re.findall(r"`([\w.]+)`", text) if name in known or "attrs." in name)


def filled(event: Event) -> frozenset[str]:
    columns = {
        name for name in COLUMNS if name not in (*REQUIRED, "attrs") and getattr(event, name) is not None
    }
    return frozenset(columns | {f"attrs.{name}" for name in event.attrs if name != "schema"})


def examples(kind: str) -> list[Event]:
    found = re.search(r"```json\n(.*?)```", SECTIONS[kind], re.DOTALL)
    assert found is not None, f"{kind} has no example row"
    return [decode(line.encode(), f"{kind}:{number}") for number, line in enumerate(found[1].splitlines(), 1)]


def test_every_event_kind_has_a_section() -> None:
    assert list(SECTIONS) == [str(kind) for kind in Kind]


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_node_has_an_example_row_with_its_required_columns(kind: Kind) -> None:
    for writer, event in zip(writers(kind), examples(kind), strict=True):
        assert event.kind is kind
        assert writer.must, "the table is read"
        assert writer.accepts(event), filled(event) ^ writer.must


def test_a_row_without_a_required_column_is_detected() -> None:
    broker_ack = examples("send_ack")[1]
    assert not any(writer.accepts(broker_ack) for writer in writers("send"))


def test_the_first_event_of_a_node_has_the_schema_version() -> None:
    rows = [event for kind in SECTIONS for event in examples(kind)]
    assert {event.attrs.get("schema") for event in rows if event.seq == 0} == {str(SCHEMA_VERSION)}


def test_the_table_of_columns_has_every_column_with_its_type() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\w ]+) \| (yes|) ?\|", PAGE, re.MULTILINE)
    types = {"kind": "string", "attrs": "map<string,string>"}
    assert [name for name, _, _ in rows] == list(COLUMNS)
    assert [name for name, _, required in rows if required] == list(REQUIRED)
    for name, kind, _ in rows:
        assert types.get(name, kind) == COLUMNS[name]


def test_the_java_program_on_the_page_writes_a_valid_event_log(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("not tested: the Java program of the event log page, without a JDK")
    program = re.search(r"```java\n(.*?)```", PAGE, re.DOTALL)
    assert program is not None
    source, log = tmp_path / "EventLogExample.java", tmp_path / "events.ndjson"
    source.write_text(program[1], encoding="utf-8")
    subprocess.run(["java", str(source), str(log)], check=True, timeout=120)
    rows = list(read_log(log))
    assert [(event.seq, str(event.kind)) for event in rows] == [(0, "deliver"), (1, "consume_ok")]
    assert all(any(writer.accepts(event) for writer in writers(event.kind)) for event in rows)


def unexpected(events: Iterable[Event]) -> list[Event]:
    """Return the events that no row of the page's tables describes."""
    return [event for event in events if not any(one.accepts(event) for one in writers(event.kind))]


def test_members_of_a_dledger_group_write_only_the_documented_events_and_columns() -> None:
    events = [e for seed in range(5) for e in event_log.record(random.Random(seed).randbytes(400))]
    # The simulation writes the crash event itself, with the name of the member as its node.
    assert unexpected(event for event in events if event.kind is not Kind.CRASH) == []
    assert {event.kind for event in events} >= {
        Kind.VOTE,
        Kind.BECOME_LEADER,
        Kind.RAFT_COMMIT,
        Kind.TRUNCATE,
    }


def test_name_server_broker_and_clients_write_only_the_documented_events_and_columns(tmp_path: Path) -> None:
    events: list[Event] = []
    asyncio.run(_send_and_fail_once(events, str(tmp_path / "store")))
    assert unexpected(events) == []
    redelivered = [event for event in events if event.kind is Kind.DELIVER][-1]
    assert redelivered.topic == "%RETRY%billing"
    [retry] = [event for event in events if event.kind is Kind.RETRY and event.node == "broker-a"]
    assert (retry.topic, retry.msg_id) == ("Orders", redelivered.msg_id)
    appended = {event.commit_offset for event in events if event.kind is Kind.APPEND}
    acked = [event for event in events if event.kind is Kind.SEND_ACK and event.node == "broker-a"]
    assert appended >= {event.commit_offset for event in acked}, "commit_offset is the first byte"


async def _send_and_fail_once(events: list[Event], store: str) -> None:
    def log(node: str) -> EventLog:
        return EventLog(events.append, node, SystemClock())

    redelivered = asyncio.Event()

    async def fails_once(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        if messages[0].reconsume_times:
            redelivered.set()
            return None
        return RetryLater(delay_level=1)

    runtime = production(AsyncioNetwork(), None)
    namesrv = NameServer(NameServerConfig(port=0), runtime, log("namesrv"))
    address = await namesrv.start()
    broker = Broker(
        BrokerConfig(store_directory=store, port=0, name_servers=(address,)), runtime, log("broker-a")
    )
    await broker.start()
    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with connect(str(address)) as session:
        await Producer(session, events=log("producer")).send(new_message("Orders", b"coffee", keys=["7"]))
        consumer = PushConsumer(session, "billing", fails_once, config, events=log("consumer"))
        async with consumer:
            await consumer.subscribe("Orders")
            async with asyncio.timeout(60):
                await redelivered.wait()
    await broker.stop()
    await namesrv.stop()
