"""Bodies at the limit of each request and beyond, bodies of requests that use none, and absent members.

See docs/reference/protocol/framing.md, "JSON bodies" and "Operation headers".
"""

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import msgspec

from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting import bodies, headers

_MIB: Final = 1 << 20
_SMALL, _LARGE = ("HEART_BEAT", "CHECK_CLIENT_CONFIG", "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP",
                  "UPDATE_BROKER_CONFIG", "SET_MESSAGE_REQUEST_MODE"), (
                  "LOCK_BATCH_MQ", "UNLOCK_BATCH_MQ", "UPDATE_AND_CREATE_TOPIC_LIST",
                  "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST")  # fmt: skip
_OF_NAME_SERVERS: Final = {
    "UPDATE_NAMESRV_CONFIG": _MIB, "QUERY_DATA_VERSION": _MIB, "REGISTER_TOPIC_IN_NAMESRV": 4 * _MIB,
}  # fmt: skip
_WITHOUT_BODY: Final = (
    "GET_ALL_TOPIC_CONFIG", "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", "GET_ALL_CONSUMER_OFFSET",
    "GET_BROKER_CONFIG", "GET_ALL_DELAY_OFFSET", "GET_SYSTEM_TOPIC_LIST_FROM_BROKER",
    "GET_ALL_PRODUCER_INFO", "GET_BROKER_HA_STATUS", "GET_ALL_MESSAGE_REQUEST_MODE",
)  # fmt: skip
_NEEDED: Final[dict[str, Any]] = {
    "brokerName": "b", "brokerAddr": "10.0.0.9:1", "clusterName": "c", "brokerId": "0", "topic": "t",
}  # fmt: skip
_JAVA: Final = (0, 0.0, False, "", None, msgspec.UNSET)
"""What an absent member counts as, unless stated."""
_OTHERS: Final[Mapping[str, Any]] = {
    "TopicConfig.read_queue_nums": 16, "TopicConfig.write_queue_nums": 16, "TopicConfig.perm": 6,
    "TopicConfig.topic_filter_type": "SINGLE_TAG",
    "SubscriptionGroup.consume_broadcast_enable": True, "SubscriptionGroup.consume_enable": True,
    "SubscriptionGroup.consume_from_min_enable": True,
    "SubscriptionGroup.notify_consumer_ids_changed_enable": True, "SubscriptionGroup.retry_max_times": 16,
    "SubscriptionGroup.retry_queue_nums": 1, "SubscriptionGroup.which_broker_when_consume_slowly": 1,
    "RequestMode.mode": "PULL", "Subscription.sub_string": "*", "Subscription.expression_type": "TAG",
    "ConsumerData.consume_from_where": "CONSUME_FROM_LAST_OFFSET",
    "ConsumerData.consume_type": "CONSUME_PASSIVELY", "ConsumerData.message_model": "CLUSTERING",
    "ConsumedDirectly.auto_commit": True, "ConsumedDirectly.consume_result": "CR_SUCCESS",
    "UpdateTopicRequest.topic_filter_type": "SINGLE_TAG",
}  # fmt: skip


async def request_bodies(site: Site) -> None:
    """Send each body at its limit, and one byte more: only the longer one is refused for its size."""
    site.rule = chapters.JSON_BODIES
    limits = [(name, _MIB, site.broker) for name in _SMALL] + [
        (name, 4 * _MIB, site.broker) for name in _LARGE
    ]
    limits += [(name, most, site.name_server) for name, most in _OF_NAME_SERVERS.items()]
    for name, most, to in limits:
        for size in (most, most + 1):
            answer = await site.ask(name, b"x" * size, expects=None, to=to, **_NEEDED)
            text = f"a body of {size} bytes, at most {most} allowed"
            site.compare(
                f"whether {name} takes {size} bytes", size == most, text not in (answer.remark or "")
            )
            site.compare(f"the code of {name} with {size} bytes", 1, answer.code, answer.remark)
    for name in _WITHOUT_BODY:
        empty = await site.ask(name)
        full = await site.ask(name, b"x" * 100)
        site.compare(f"the answer to {name} with a body", empty.body, full.body)
    await _checks(site)
    for what, expected, observed in (*_absent(bodies), *_absent(headers)):
        site.compare(f"whether an absent {what} counts as stated", expected, observed)


async def _checks(site: Site) -> None:
    """A client asks whether a broker accepts its filter."""
    subscription = {"topic": "t", "subString": "a >", "expressionType": "SQL92", "subVersion": 1}
    for text, kind, expects in (
        ("a > 1", "SQL92", 0),
        ("a >", "SQL92", 23),
        ("a", "OTHER", 1),
        ("a", "TAG", 0),
    ):
        given = {**subscription, "subString": text, "expressionType": kind}
        await site.ask(
            "CHECK_CLIENT_CONFIG", {"clientId": "c", "group": "g", "subscriptionData": given}, expects=expects
        )


def _absent(module: ModuleType) -> Iterator[tuple[str, bool, bool]]:
    """Yield the name of each member that may be absent, and whether it counts as the stated value."""
    kinds = [
        each for each in vars(module).values() if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    for kind in kinds:
        for member in msgspec.structs.fields(kind):
            if member.default is not msgspec.NODEFAULT:
                name = f"{kind.__name__}.{member.name}"
                value = member.default
                if not isinstance(value, msgspec.Struct):
                    yield name, True, value == _OTHERS[name] if name in _OTHERS else value in _JAVA


REQUEST_BODIES: Final = Inspection("request bodies", request_bodies, {"property_filter": True})
