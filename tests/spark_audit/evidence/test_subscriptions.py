"""What a group has to receive: its subscriptions over time, the tags of messages, and what is missing.

Goal: a message that a group filters out is not lost, a selected one is, and where the log does not say which
of the two it is, the verdict is unknown. Method: logs of a few rows; and the log of a real broker with real
clients, as it is and without one delivery.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from mqproof import Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import ConsumeFrom, MessageSelector, PushConsumerConfig
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.embedded import embedded_broker
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.clock import SystemClock
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.report.model import Verdict
from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.evidence import sql_selection
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.subscriptions import with_stored_tags
from mqproof.spark_audit.sources.mapping.sql_expressions import selecting
from mqproof.spec.events import Event, as_row
from tests.spark_audit.conftest import LogBuilder, embedded_audit, embedded_evidence

A, B, NONE, UNKNOWN = "A", "B", "", None
LOST = ("lost-write", None)


def sent(builder: LogBuilder, *tags: str | None, first: int = 0) -> LogBuilder:
    """Store a message m_N with each of the tags."""
    for offset, each in enumerate(tags, first):
        builder.stored(f"m_{offset}", offset)
        for row in builder.rows[-3:]:
            row["tags"] = each
    return builder


def received(builder: LogBuilder, *offsets: int, group: str = "g") -> LogBuilder:
    for offset in offsets:
        builder.deliver(f"m_{offset}", offset, group, node=f"of-{group}")
    return builder


def found(builder: LogBuilder, invariant: str, options: Options | None = None) -> dict[str, Any]:
    """Return the rule and cause of each message about which the check has a finding."""
    with embedded_evidence(builder.rows, ("broker",), options) as evidence:
        rows = CHECKS[invariant].findings(evidence).collect()
        return {row.msg_id: (row.rule, row.cause) for row in rows}


def causes(builder: LogBuilder, options: Options | None = None) -> dict[str, str | None]:
    return {msg_id: cause for msg_id, (_, cause) in found(builder, "DELIV-1", options).items()}


@pytest.mark.parametrize(
    ("expression", "tags", "cause"),
    [
        ("*", A, None),
        ("*", UNKNOWN, None),
        ("", A, None),
        ("A", A, None),
        ("A", B, "filtered"),
        ("A", NONE, "filtered"),
        ("A", UNKNOWN, "tags_unknown"),
        (" B||A ", A, None),
        ("AA || B", A, "filtered"),
    ],
)
def test_a_missing_message_is_lost_if_the_subscription_selects_its_tags(
    expression: str, tags: str | None, cause: str | None
) -> None:
    builder = sent(LogBuilder(subscribed=()).subscribe("g", expression), A, tags, A)
    assert causes(received(builder, 0, 2)) == {"m_1": cause}


def test_without_a_subscription_the_user_may_state_it() -> None:
    builder = sent(LogBuilder(subscribed=()), A, B, A)
    for group in ("g", "h", "i"):
        received(builder, 0, 2, group=group)

    def stated(*subscriptions: tuple[str, str, str]) -> set[tuple[str, str | None]]:
        with embedded_evidence(builder.rows, ("broker",), Options(subscriptions=subscriptions)) as evidence:
            rows = CHECKS["DELIV-1"].findings(evidence).collect()
            return {(row.group, row.cause) for row in rows}

    unknown = "subscription_unknown"
    assert stated(("g", "t", "A"), ("h", "*", "*"), ("i", "other", "A"), ("*", "other", "*")) == {
        ("g", "filtered"), ("h", None), ("i", unknown),
    }  # fmt: skip
    # The option that names more parts applies.
    assert stated(("*", "*", "A"), ("*", "t", "B"), ("g", "t", "A")) == {
        ("g", "filtered"), ("h", None), ("i", None),
    }  # fmt: skip


def test_the_log_is_preferred_to_what_the_user_states() -> None:
    builder = received(sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, B, A), 0, 2)
    assert causes(builder, Options(subscriptions=(("g", "t", "*"),))) == {"m_1": "filtered"}


def test_other_filters_than_tags_and_sql_are_not_evaluated() -> None:
    builder = received(sent(LogBuilder(subscribed=()).subscribe("g", "A", "CLASS"), A, A, A), 0, 2)
    assert causes(builder) == {"m_1": "filter_not_evaluated"}


def priced(*prices: str | None, expression: str = "price > 5") -> LogBuilder:
    """Store messages with a price, for a group that subscribes by SQL92; None: unknown properties."""
    builder = sent(LogBuilder(subscribed=()).subscribe("g", expression, "SQL92"), *[A] * len(prices))
    for row in builder.rows:
        number = str(row.get("msg_id", "")).removeprefix("m_")
        if row["kind"] == "append" and (price := prices[int(number)]) is not None:
            row["attrs"] = {**row["attrs"], "properties": price and f'{{"price":"{price}"}}'}
    return builder


def test_an_sql_subscription_decides_which_messages_are_due() -> None:
    # m_1 is not selected, m_2 is, and of m_3 the log has no properties.
    builder = received(priced("7", "3", "8", None, "9"), 0, 4)
    assert causes(builder) == {"m_1": "filtered", "m_2": None, "m_3": "properties_unknown"}


def test_an_expression_may_use_tags_and_an_error_of_the_evaluation_selects_nothing() -> None:
    builder = received(priced("7", "x", "7", expression="price > 5 AND TAGS = 'A'"), 0, 2)
    assert causes(builder) == {"m_1": "filtered"}


def test_an_invalid_expression_or_property_text_decides_nothing() -> None:
    assert causes(received(priced("7", "3", "7", expression="price >"), 0, 2)) == {
        "m_1": "filter_not_evaluated"
    }
    assert causes(received(priced("7", "", "7"), 0, 2)) == {"m_1": "properties_unknown"}


def test_deliveries_that_an_sql_subscription_does_not_select_are_violations() -> None:
    builder = received(priced("7", "3", "8"), 0, 1, 2)
    assert found(builder, "DELIV-10") == {"m_1": ("not-selected", None)}


@pytest.mark.parametrize(
    ("prices", "verdict", "detail"),
    [
        (("7", "8"), Verdict.HELD, ""),
        (("7", "3"), Verdict.VIOLATED, "not-selected 1"),
        (
            ("7", None),
            Verdict.UNKNOWN,
            "the log does not have the properties of 1 message (attrs.properties) ",
        ),
    ],
)
def test_filter_sound_is_judged_for_sql_where_the_log_has_the_properties(
    prices: tuple[str | None, ...], verdict: Verdict, detail: str, tmp_path: Path
) -> None:
    builder = received(priced(*prices), *range(len(prices)))
    done = embedded_audit(builder.rows, tmp_path, checks={"DELIV-10": CHECKS["DELIV-10"]})
    (result,) = done.results
    assert (result.verdict, result.detail.startswith(detail)) == (verdict, True), result.detail


def test_more_properties_than_are_evaluated_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_selection, "DIFFERENT_MAX", 1)
    assert causes(received(priced("7", "3", "7"), 0, 2)) == {"m_1": "properties_unknown"}


def test_the_subscription_counts_that_was_in_effect_until_the_group_read_past_the_message() -> None:
    builder = sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, B, A, A)
    # Messages 1 and 2 were passed before the change, message 4 and 5 after it, 6 and 7 were sent after it.
    received(builder, 0, 3)
    sent(builder, A, B, first=4).subscribe("g", "B")
    sent(builder, A, B, B, first=6)
    assert causes(received(builder, 8)) == {
        "m_1": "filtered",
        "m_2": None,
        "m_4": "subscription_changed",
        "m_5": "subscription_changed",
        "m_6": "filtered",
        "m_7": None,
    }


def test_members_and_brokers_may_state_the_subscription() -> None:
    builder = LogBuilder(subscribed=()).subscribe("g", "A")
    builder.add("subscribe", "of-g", topic="t", group="g", client="c", attrs={"expression": "A"})
    assert causes(received(sent(builder, A, A, B, A), 0, 3)) == {"m_1": None, "m_2": "filtered"}
    # The members disagree.
    builder = LogBuilder(subscribed=())
    for node, expression in (("one", "A"), ("two", "B")):
        builder.add("subscribe", node, topic="t", group="g", attrs={"expression": expression})
    assert causes(received(sent(builder, A, A, "C", A), 0, 3)) == {
        "m_1": "subscription_changed", "m_2": "filtered",
    }  # fmt: skip


def test_a_subscription_ends() -> None:
    builder = LogBuilder(subscribed=())
    builder.add("subscribe", "one", topic="t", group="g", attrs={"expression": "A"})
    builder.add("unsubscribe", "one", topic="t", group="g")
    builder.add("subscribe", "two", topic="t", group="g", attrs={"expression": "*"})
    assert causes(received(sent(builder, A, B, A), 0, 2)) == {"m_1": None}


def test_before_the_first_statement_the_subscription_of_a_group_is_unknown() -> None:
    builder = received(sent(LogBuilder(subscribed=()), A, B, A), 0)
    builder.subscribe("g", "*")
    assert causes(received(builder, 2)) == {"m_1": "subscription_unknown"}
    assert causes(received(sent(builder, A, A, first=3), 4)) == {"m_1": "subscription_unknown", "m_3": None}


def test_members_of_a_broadcast_group_have_the_subscription_of_the_group() -> None:
    builder = sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, A, B, A)
    for member, offsets in (("one", (0, 1, 3)), ("two", (0, 3))):
        for offset in offsets:
            builder.deliver(f"m_{offset}", offset, "g", node=member)
    rows = [
        row | {"group": f"g@{row['client']}"} if row["kind"] == "deliver" else row for row in builder.rows
    ]
    builder.rows = rows
    gaps = found(builder, "DELIV-11", Options(broadcast=("g",)))
    assert gaps["m_1"] == ("broadcast-gap", None)
    assert gaps["m_2"] == ("broadcast-gap", "filtered")


def test_an_offset_that_the_group_filters_out_is_not_skipped() -> None:
    builder = sent(LogBuilder(subscribed=()).subscribe("g", "A").subscribe("h", "*"), A, B, A, A)
    received(builder, 0, 1, 2, 3, group="h")
    assert found(received(builder, 0, 3), "DELIV-4") == {"m_2": ("poll-skip", None)}


def test_an_offset_that_another_member_received_is_skipped_whatever_the_subscription() -> None:
    builder = received(sent(LogBuilder(subscribed=()), A, B, A), 0, 2)
    builder.deliver("m_1", 1, "g", node="other")
    assert found(builder, "DELIV-4") == {"m_1": ("poll-skip", None)}


def test_records_in_a_store_have_the_tags_that_the_log_lacks() -> None:
    with embedded_evidence(LogBuilder().rows, ("broker",)) as evidence:
        table = evidence.events.sparkSession.createDataFrame
        records = table([("m_0", B), ("m_1", B), ("m_2", None)], "msg_id string, tags string")
        rows = table([("m_0", A), ("m_1", None), ("m_2", None), ("m_3", None)], "msg_id string, tags string")
        stored = replace(evidence, store=SimpleNamespace(records=records))  # type: ignore[arg-type]
        found = {row.msg_id: row.tags for row in with_stored_tags(rows, stored).collect()}
        assert found == {"m_0": A, "m_1": B, "m_2": NONE, "m_3": UNKNOWN}
        assert with_stored_tags(rows, evidence) is rows


def test_a_delivery_that_no_subscription_selects_violates_deliv_10() -> None:
    builder = sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, B, B, A)
    received(builder, 0, 1)
    assert found(builder, "DELIV-10") == {"m_1": ("not-selected", None)}
    # After a change, messages may come that were sent before it, and no others.
    builder.subscribe("g", "B")
    sent(builder, A, B, first=4)
    received(builder, 2, 3, 4, 5)
    assert found(builder, "DELIV-10") == {"m_1": ("not-selected", None), "m_4": ("not-selected", None)}


def test_deliveries_to_groups_without_a_tag_filter_are_not_judged() -> None:
    for expression, kind in (("*", "TAG"), ("A", "SQL92")):
        builder = received(sent(LogBuilder(subscribed=()).subscribe("g", expression, kind), B, UNKNOWN), 0, 1)
        assert found(builder, "DELIV-10") == {}


@pytest.mark.parametrize(
    ("builder", "invariant", "verdict", "detail"),
    [
        (
            received(sent(LogBuilder(subscribed=()), A, B, A), 0, 2),
            "DELIV-1",
            Verdict.UNKNOWN,
            "1 message may have been filtered out: the log has no subscribe event of the group, and "
            "--subscription does not state it",
        ),
        (
            received(sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, UNKNOWN, A), 0, 2),
            "DELIV-1",
            Verdict.UNKNOWN,
            "1 message may have been filtered out: the log does not have their tags",
        ),
        (
            received(sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, B, A), 0, 2),
            "DELIV-1",
            Verdict.HELD,
            "",
        ),
        (
            received(sent(LogBuilder(subscribed=()), A, B, A), 0, 1, 2),
            "DELIV-1",
            Verdict.HELD,
            "",
        ),
        (
            received(sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, B, A), 0, 2),
            "DELIV-10",
            Verdict.HELD,
            "",
        ),
        (
            received(sent(LogBuilder(subscribed=()).subscribe("g", "A"), A, UNKNOWN), 0, 1),
            "DELIV-10",
            Verdict.UNKNOWN,
            "the log does not have the tags of 1 message for groups that select by tag",
        ),
        (
            received(sent(LogBuilder(subscribed=()).subscribe("g", "*"), A, B), 0, 1),
            "DELIV-10",
            Verdict.NOT_TESTED,
            "the input has no tag filters",
        ),
    ],
)
def test_the_verdict_says_what_is_missing(
    tmp_path: Path, builder: LogBuilder, invariant: str, verdict: Verdict, detail: str
) -> None:
    done = embedded_audit(builder.rows, tmp_path, checks={invariant: CHECKS[invariant]})
    assert [(each.verdict, each.detail) for each in done.results] == [(verdict, detail)]


@pytest.mark.parametrize(
    "selector",
    [
        MessageSelector.tag("A"),
        pytest.param(MessageSelector.sql("drink = 'A'"), marks=pytest.mark.deep("five audits, 7 s")),
    ],
)
def test_the_log_of_a_real_broker_shows_what_a_group_filters_out(
    selector: MessageSelector, tmp_path: Path
) -> None:
    events: list[Event] = []
    asyncio.run(_filter(events, str(tmp_path / "store"), selector))
    rows = [as_row(event) for event in events]
    of_group = [row for row in rows if row["kind"] == "deliver" and row["group"] == "choosing"]
    assert len(of_group) == 20
    checks = {name: CHECKS[name] for name in ("DELIV-1", "DELIV-4", "DELIV-10")}

    def results(chosen: list[dict[str, Any]]) -> dict[str, tuple[Verdict, dict[str, int]]]:
        done = embedded_audit(_numbered(chosen), tmp_path, checks=checks)
        return {each.id: (each.verdict, dict(each.counts)) for each in done.results}

    whole = results(rows)
    assert {name: verdict for name, (verdict, _) in whole.items()} == dict.fromkeys(checks, Verdict.HELD)
    of_others = whole["DELIV-1"][1]
    # At the end of a queue, the group has not read past them as far as the log shows.
    assert of_others["filtered"] + of_others["unseen"] == 40 > of_others["unseen"]
    assert whole["DELIV-10"][1]["filter_deliveries"] == 20
    busiest = Counter(row["queue_id"] for row in of_group).most_common(1)[0][0]
    in_order = sorted((row["queue_offset"], row["msg_id"]) for row in of_group if row["queue_id"] == busiest)
    _, lost = in_order[1]
    less = [row for row in rows if not (row["msg_id"] == lost and row["node"] == "chooser")]
    verdict, counts = results(less)["DELIV-1"]
    assert (verdict, counts["lost-write"]) == (Verdict.VIOLATED, 1)
    for ignored in ("broker-a", "chooser"):
        # Either of the two nodes states the subscription.
        one = [row for row in rows if not (row["kind"] == "subscribe" and row["node"] == ignored)]
        assert results(one)["DELIV-1"] == whole["DELIV-1"]
    none = [row for row in rows if row["kind"] != "subscribe"]
    assert results(none)["DELIV-1"][0] is Verdict.UNKNOWN


def _numbered(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Number the rows of each node without gaps."""
    numbers: Counter[str] = Counter()
    numbered = []
    for row in rows:
        numbered.append(row | {"seq": numbers[row["node"]]})
        numbers[row["node"]] += 1
    return numbered


async def _filter(events: list[Event], store: str, selector: MessageSelector) -> None:
    """Send 60 messages with three kinds of tags; one group reads 20 of them, another one all."""

    def log(node: str) -> EventLog:
        return EventLog(events.append, node, SystemClock())

    received: Counter[str] = Counter()
    complete = asyncio.Event()

    def listener(group: str) -> Any:
        async def receive(messages: Sequence[ReceivedMessage]) -> None:
            received[group] += len(messages)
            if received == {"reading": 60, "choosing": 20}:
                complete.set()

        return receive

    runtime = production(AsyncioNetwork(), None)
    namesrv = NameServer(NameServerConfig(port=0), runtime, None)
    address = await namesrv.start()
    settings = BrokerConfig(
        store_directory=store, port=0, name_servers=(address,), property_filter=selector.is_sql
    )
    broker = Broker(settings, runtime, log("broker-a"))
    await broker.start()
    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with connect(str(address)) as session:
        producer = Producer(session, events=log("producer"))
        for number in range(60):
            tag = ("A", "B", None)[number % 3]
            properties = {"drink": tag} if tag else None
            await producer.send(new_message("Orders", b"coffee", tag=tag, properties=properties))
        choosing = PushConsumer(session, "choosing", listener("choosing"), config, events=log("chooser"))
        reading = PushConsumer(session, "reading", listener("reading"), config, events=log("reader"))
        async with choosing, reading:
            await choosing.subscribe("Orders", selector)
            await reading.subscribe("Orders")
            async with asyncio.timeout(60):
                await complete.wait()
    await broker.stop()
    await namesrv.stop()


@pytest.mark.parametrize("enabled", [True, False])
def test_a_broker_that_filters_by_property_logs_the_properties(enabled: bool) -> None:
    events: list[Event] = []

    async def send() -> None:
        log = EventLog(events.append, "broker-a", SystemClock())
        broker = EmbeddedBroker(properties={"enablePropertyFilter": str(enabled).lower()})
        message = new_message("Orders", b"x", tag="A", properties={"price": "7"})
        with patch.object(embedded_broker, "Broker", partial(Broker, events=log)):
            async with broker, broker.client() as session:
                await Producer(session).send_or_raise(message)

    asyncio.run(send())
    (event,) = [event for event in events if event.kind == "append"]
    given = event.attrs.get("properties")
    assert (given is not None) is enabled
    if given is not None:
        assert selecting(["price > 5 AND TAGS = 'A'", "price > 9"], given, None, None) == [
            "price > 5 AND TAGS = 'A'"
        ]
