"""The values that an application passes: which are accepted, and with which error each other one is refused.

See docs/how-to/client.md, and the docstrings of the interface.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.impl.client.connection.client_ids import client_id
from mqproof.impl.client.connection.client_settings import ClientSettings
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector, as_selector
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import (
    MessageError,
    MessageQueue,
    NoReplyError,
    ReceivedMessage,
    Refused,
    RetryLater,
    SendError,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.transaction_producer import TransactionProducer
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.properties import ConfigError

_DEFAULTS: Final[tuple[tuple[object, Mapping[str, object]], ...]] = (
    (
        ProducerConfig(),
        {
            "group": "mqproof_producer", "send_timeout_ms": 3000, "retries": 2, "retry_unconfirmed": False,
            "body_bytes_max": 4 * 1024 * 1024, "compress_from_bytes": 4096, "latency_fault_strategy": False,
            "default_topic": "TBW102", "default_topic_queues": 4, "trace_topic": None, "retry_unknown": True,
        },
    ),
    (
        PushConsumerConfig(),
        {
            "message_model": "CLUSTERING", "orderly": False, "consume_from": "CONSUME_FROM_LAST_OFFSET",
            "consume_from_ms": None, "concurrency": 20, "batch_max": 1, "reconsume_max": None,
            "consume_timeout_ms": 900_000, "offsets_directory": None, "offset_store": None,
            "queue_listener": None, "trace_topic": None, "persist_interval_ms": 5000, "stop_timeout_ms": 5000,
        },
    ),
    (
        PullLimits(),
        {
            "batch": 32, "hold_ms": 15_000, "messages_max": 1000, "bytes_max": 100 * 1024 * 1024,
            "span_max": 2000, "total_bytes_max": 512 * 1024 * 1024,
        },
    ),
    (
        LitePullConfig(),
        {
            "consume_from": "CONSUME_FROM_LAST_OFFSET", "consume_from_ms": None, "offset_store": None,
            "auto_commit": True, "commit_interval_ms": 5000,
            "limits": PullLimits(32, 20_000, 1000, 100 * 1024 * 1024, None, 512 * 1024 * 1024),
        },
    ),
    (RetryLater(), {"delay_level": 0, "pause_ms": 1000, "done": 0}),
)  # fmt: skip
"""RocketMQ's defaults."""

_LEAST: Final = {
    "send_timeout_ms": 1, "retries": 0, "body_bytes_max": 1, "compress_from_bytes": 0,
    "default_topic_queues": 1, "concurrency": 1, "batch_max": 1, "consume_timeout_ms": 1,
    "persist_interval_ms": 1, "stop_timeout_ms": 0, "reconsume_max": 0, "commit_interval_ms": 1,
}  # fmt: skip
"""The least value of each number."""
_FLAGS: Final = ("retry_unconfirmed", "retry_unknown", "latency_fault_strategy", "orderly", "auto_commit")
_LONGEST_GROUP: Final = "%RETRY|group-_" + "g" * 106
_TIMED: Final = ConsumeFrom.TIMESTAMP


class _Store:
    async def load(self, _queue: object) -> None: ...

    async def save(self, _offsets: object, *, reset: bool = False) -> None: ...

    async def release(self, _queue: object, _offset: int) -> None: ...


def _nothing(*_: object) -> None:
    pass


def judge(expect: Expectations, session: Session) -> None:
    """Pass each kind of value to each part of the interface. The session sends nothing."""
    for config, defaults in _DEFAULTS:
        for name, value in defaults.items():
            expect.equal(f"the default of {type(config).__name__}.{name}", value, getattr(config, name))
    _judge_configs(expect, session)
    _judge_messages(expect)
    _judge_selectors(expect)
    _judge_connections(expect)
    _judge_values(expect)


def _judge_configs(expect: Expectations, session: Session) -> None:
    def push(config: PushConsumerConfig) -> object:
        return PushConsumer(session, "group", _nothing, config)

    def lite(config: LitePullConfig) -> object:
        return LitePullConsumer(session, "group", config)

    def produce(config: ProducerConfig) -> object:
        return Producer(session, config)

    kinds: tuple[tuple[Any, Callable[[Any], object]], ...] = (
        (ProducerConfig(), produce),
        (PushConsumerConfig(), push),
        (LitePullConfig(), lite),
    )
    for config, use in kinds:
        for name in (each for each in (*_LEAST, *_FLAGS) if hasattr(config, each)):
            for value, kind in _refused_values(name):
                what = f"{type(config).__name__} with {name}={value!r}"
                expect.refused(what, kind, lambda: use(replace(config, **{name: value})))  # noqa: B023
            if name in _LEAST:
                what = f"{type(config).__name__} with {name}={_LEAST[name]}"
                expect.accepted(what, lambda: use(replace(config, **{name: _LEAST[name]})))  # noqa: B023
    consumers: tuple[tuple[Any, Callable[[Any], object]], ...] = kinds[1:]
    for config, use in consumers:
        cases: tuple[tuple[dict[str, Any], type[Exception] | None], ...] = (
            ({"consume_from": "CONSUME_FROM_LAST"}, TypeError),
            ({"consume_from_ms": 1}, ValueError),
            ({"consume_from": _TIMED, "consume_from_ms": 0}, None),
            ({"consume_from": _TIMED, "consume_from_ms": -1}, ValueError),
            ({"consume_from": _TIMED, "consume_from_ms": 1.5}, TypeError),
            ({"consume_from": _TIMED, "consume_from_ms": True}, TypeError),
            ({"limits": 32}, TypeError),
            ({"strategy": "AVG"}, TypeError),
            ({"offset_store": object()}, TypeError),
            ({"offset_store": _Store()}, None),
        )
        _judge_cases(expect, config, use, cases)
    of_push: tuple[tuple[dict[str, Any], type[Exception] | None], ...] = (
        ({"message_model": "CLUSTERING"}, TypeError),
        ({"queue_listener": 1}, TypeError),
        ({"queue_listener": _nothing}, None),
        ({"message_model": MessageModel.BROADCASTING}, ValueError),
        ({"message_model": MessageModel.BROADCASTING, "offset_store": _Store()}, None),
        ({"message_model": MessageModel.BROADCASTING, "offsets_directory": "/offsets"}, None),
    )
    _judge_cases(expect, PushConsumerConfig(), push, of_push)
    for topic, kind in (("a b", ValueError), (1, TypeError), ("t" * 128, ValueError)):
        use = produce
        expect.refused(f"default_topic={topic!r}", kind, lambda: use(ProducerConfig(default_topic=topic)))  # type: ignore[arg-type] # noqa: B023
    expect.refused(
        "a trace topic with a space", MessageError, lambda: produce(ProducerConfig(trace_topic="a b"))
    )
    _judge_groups(expect, session)
    expect.refused("a listener that is a number", TypeError, lambda: PushConsumer(session, "g", 1))  # type: ignore[arg-type]
    expect.refused("a check that is a number", TypeError, lambda: TransactionProducer(session, 1))  # type: ignore[arg-type]


def _judge_groups(expect: Expectations, session: Session) -> None:
    members: tuple[Callable[[Any], object], ...] = (
        lambda group: Producer(session, ProducerConfig(group=group)),
        lambda group: PushConsumer(session, group, _nothing),
        lambda group: LitePullConsumer(session, group),
        lambda group: PullConsumer(session, group),
        lambda group: ScheduledPull(session, group),
    )
    for number, member in enumerate(members):
        for group, kind in (
            ("", ValueError),
            ("a b", ValueError),
            ("g" * 121, ValueError),
            (None, TypeError),
        ):
            expect.refused(f"member {number} of group {group!r}", kind, lambda: member(group))  # noqa: B023
        expect.accepted(f"member {number} of the longest group", lambda: member(_LONGEST_GROUP))  # noqa: B023


def _judge_cases(
    expect: Expectations,
    config: Any,
    use: Callable[[Any], object],
    cases: tuple[tuple[dict[str, Any], type[Exception] | None], ...],
) -> None:
    for values, kind in cases:
        what = f"{type(config).__name__} with {values}"
        if kind is None:
            expect.accepted(what, lambda: use(replace(config, **values)))  # noqa: B023
        else:
            expect.refused(what, kind, lambda: use(replace(config, **values)))  # noqa: B023


def _refused_values(name: str) -> Iterator[tuple[object, type[Exception]]]:
    if name in _FLAGS:
        yield from ((1, TypeError), ("true", TypeError))
        return
    yield from ((_LEAST[name] - 1, ValueError), ("5", TypeError), (2.0, TypeError), (True, TypeError))


def _judge_messages(expect: Expectations) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    good: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
        ({}, {}),
        ({"tag": "", "keys": []}, {}),
        ({"tag": "A", "keys": "k"}, {"TAGS": "A", "KEYS": "k"}),
        ({"keys": ("k", "l")}, {"KEYS": "k l"}),
        ({"delay_level": 3}, {"DELAY": "3"}),
        ({"delay": 0}, {"TIMER_DELAY_MS": "0"}),
        ({"delay": 1.0001}, {"TIMER_DELAY_MS": "1001"}),
        ({"delay": 0.29}, {"TIMER_DELAY_MS": "290"}),
        ({"delay": timedelta(minutes=1)}, {"TIMER_DELAY_MS": "60000"}),
        ({"deliver_at": at}, {"TIMER_DELIVER_MS": str(round(at.timestamp() * 1000))}),
        ({"deliver_at": 12.5}, {"TIMER_DELIVER_MS": "12500"}),
        ({"delay": 10**12 - 1}, {"TIMER_DELAY_MS": str((10**12 - 1) * 1000)}),
        ({"wait_for_flush": False}, {"WAIT": "false"}),
        ({"properties": {"own": "v"}, "tag": "A"}, {"own": "v", "TAGS": "A"}),
    )
    for values, properties in good:
        message = expect.accepted(f"new_message with {values}", lambda: new_message("T", b"b", **values))  # noqa: B023
        expect.equal(f"the message with {values}", Message("T", b"b", properties), message)
    for body in (bytearray(b"ab"), memoryview(b"ab")):
        message = expect.accepted("a body that can change", lambda: new_message("T", body))  # noqa: B023
        expect.equal("its body", b"ab", message and message.body)
        expect.equal("the type of its body", bytes, message and type(message.body))
    bad: tuple[dict[str, Any], ...] = (
        {"keys": "a b"}, {"keys": ("a", "")}, {"keys": (1,)}, {"tag": "A||B"}, {"tag": " A"}, {"tag": "*"},
        {"tag": " "}, {"tag": 1}, {"delay_level": -1}, {"delay_level": True}, {"delay_level": "1"},
        {"delay": -1}, {"delay": "1"}, {"delay": True}, {"delay": 10**12}, {"deliver_at": -0.5},
        {"deliver_at": datetime(2026, 1, 1)}, {"delay": 1, "deliver_at": 1}, {"delay_level": 1, "delay": 0},
        {"delay_level": 1, "deliver_at": 1}, {"properties": {"KEYS": "k"}}, {"properties": {"TTL": "k"}},
        {"properties": {"own": ""}}, {"properties": {" ": "v"}}, {"properties": {"own": 1}},
        {"properties": {1: "v"}}, {"properties": {"own": None}},
    )  # fmt: skip
    for values in bad:
        expect.refused(f"new_message with {values}", MessageError, lambda: new_message("T", b"b", **values))  # noqa: B023
    topics = ("", "a b", "t" * 128, "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", 1)
    for topic in topics:
        expect.refused(f"a message to {topic!r}", MessageError, lambda: new_message(topic, b"b"))  # type: ignore[arg-type] # noqa: B023
    expect.accepted("the longest topic", lambda: new_message("t" * 127, b"b"))
    expect.refused("a text as body", MessageError, lambda: new_message("T", "b"))  # type: ignore[arg-type]


def _judge_selectors(expect: Expectations) -> None:
    good = (
        ("*", MessageSelector.tag("*"), ("*", "TAG", None, False)),
        ("two tags", as_selector("A || B"), ("A || B", "TAG", None, False)),
        ("a text with OR in it", as_selector("ORANGE || AND"), ("ORANGE || AND", "TAG", None, False)),
        ("SQL92", MessageSelector.sql("a > 1"), ("a > 1", "SQL92", None, True)),
        ("itself", as_selector(MessageSelector.sql("a > 1")), ("a > 1", "SQL92", None, True)),
    )
    for what, one, expected in good:
        expect.equal(
            f"selector {what}", expected, (one.expression, one.expression_type, one.module, one.is_sql)
        )
    for bad in ("a = 1", "A OR B", "a > 1", "x AND y"):
        expect.refused(f"tags {bad!r}", ValueError, lambda: as_selector(bad))  # noqa: B023
    expect.refused("tags 1", TypeError, lambda: as_selector(1))  # type: ignore[arg-type]
    expect.refused("a damaged expression", ValueError, lambda: MessageSelector.sql("a >"))
    expect.refused("a module of text", TypeError, lambda: MessageSelector.function("asm"))  # type: ignore[arg-type]
    expect.refused("a module of other bytes", ValueError, lambda: MessageSelector.function(b"asm"))
    module = MessageSelector.function(b"\0asm\1\0\0\0")
    expect.equal("the module of a function", (b"\0asm\1\0\0\0", False), (module.module, module.is_sql))


def _judge_connections(expect: Expectations) -> None:
    for name in ("", " ", "a@b"):
        expect.refused(f"instance {name!r}", ValueError, lambda: client_id(name))  # noqa: B023
        expect.refused(f"unit {name!r}", ValueError, lambda: client_id("i", name))  # noqa: B023
    expect.equal("the id of an instance", ["i"], client_id("i").split("@")[1:])
    expect.equal("the id of a unit", ["i", "u"], client_id("i", "u").split("@")[1:])
    expect.equal("the host of an id", 4, len(client_id("i").split("@")[0].split(".")))
    for instance in (None, "DEFAULT"):
        parts = client_id(instance).split("@")
        expect.equal("the parts of an id that is unique", (2, True), (len(parts), "#" in parts[1]))
        expect.equal("two ids are equal", False, client_id(instance) == client_id(instance))
    expect.refused("an empty list", ValueError, lambda: connect(";"))
    expect.refused("a bad port", ValueError, lambda: connect("127.0.0.1:x"))
    for named in ({"instance": "i"}, {"unit": "u"}):
        expect.refused(
            f"a client id with {named}", ValueError, lambda: connect("127.0.0.1:1", "a@b", **named)  # type: ignore[arg-type] # noqa: B023
        )  # fmt: skip
    some = ClientSettings(name_servers="127.0.0.1:1;127.0.0.1:2", instance="s", unit="u")
    cases: tuple[tuple[Session | None, str], ...] = (
        (expect.accepted("settings", lambda: connect(settings=some)), "s@u"),
        (expect.accepted("an instance", lambda: connect(settings=some, instance="i")), "i@u"),
        (expect.accepted("a unit", lambda: connect(settings=some, unit="v")), "s@v"),
        (expect.accepted("an id", lambda: connect(client_id="x@y", settings=some)), "y"),
    )
    for session, end in cases:
        known = session.name_servers.addresses if session else ()
        expect.equal("the name servers", ["127.0.0.1:1", "127.0.0.1:2"], sorted(map(str, known)))
        expect.equal("the end of the client id", end, session and session.client_id.partition("@")[2])
    given = expect.accepted("name servers beside settings", lambda: connect("127.0.0.1:3", settings=some))
    expect.equal(
        "the given name servers", ["127.0.0.1:3"], [str(each) for each in given.name_servers.addresses]
    )
    own = ClientSettings(client_id="h@i", name_servers="127.0.0.1:1")
    with_id = expect.accepted("settings with an id", lambda: connect(settings=own))
    expect.equal("the client id of the settings", "h@i", with_id and with_id.client_id)
    expect.equal("no account", None, own.credentials)
    for values in ({"access_key": "a"}, {"secret_key": "s"}, {"security_token": "t"}):
        expect.refused(f"only {values}", ConfigError, lambda: ClientSettings(**values).credentials)  # noqa: B023
    account = ClientSettings(access_key="a", secret_key="s", security_token="t").credentials
    shown = account and (account.access_key, account.secret_key, account.security_token)
    expect.equal("the account", ("a", "s", "t"), shown)
    expect.equal("a secret is shown", False, "secret" in repr(replace(own, secret_key="secret")))


def _judge_values(expect: Expectations) -> None:
    queue = MessageQueue("T", "b", 3)
    expect.equal("the text of a queue", "T@b:3", str(queue))
    message = Message("%RETRY%g", b"x", {"RETRY_TOPIC": "T", "TAGS": "A", "KEYS": "k  l", "UNIQ_KEY": "U"})
    received = ReceivedMessage(StoredMessage(message, 7, 8, 9, 10, 11), queue, 2)
    values = (
        received.body, received.topic, received.tag, received.keys, received.message_id,
        received.queue_offset, received.min_offset, received.max_offset,
    )  # fmt: skip
    expect.equal("a received message", (b"x", "T", "A", ["k", "l"], "U", 7, -1, -1), values)
    plain = replace(received, stored=StoredMessage(Message("X", b"x"), 7, 8, 9, 10, 11))
    expect.equal("a plain message", ("T", None, []), (plain.topic, plain.tag, plain.keys))
    outcomes = (
        (Refused("U", "NO_ROUTE", "why", 1), "message U is not stored: NO_ROUTE: why"),
        (Refused("U", "NO_ROUTE", "", 1), "message U is not stored: NO_ROUTE: no remark"),
        (Unknown("U", "lost", 2), "message U may be stored: lost"),
    )
    for outcome, text in outcomes:
        error = SendError(outcome)
        expect.equal("the error of a send", (text, outcome), (str(error), error.outcome))
    sent = Sent("SEND_OK", "U", queue, 1, "O", 1)
    for outcome_or_none, end in ((sent, "message U is stored"), (Unknown("U", "lost", 1), "it may be stored"),
                                 (None, "its send has not ended")):  # fmt: skip
        no_reply = NoReplyError(5, outcome_or_none)
        expected_error = (f"no reply to the request within 5 ms; {end}", outcome_or_none)
        expect.equal("the error of a request", expected_error, (str(no_reply), no_reply.outcome))
    for one in (sent, Refused("U", "S", "", 1), Unknown("U", "", 1)):
        expect.refused(f"the truth of {type(one).__name__}", TypeError, lambda: bool(one))  # noqa: B023
