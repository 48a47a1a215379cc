"""Single pulls: what each subscription selects, what each flag does, each refusal and its order.

See docs/reference/protocol/pulling.md, "Pull requests", and filters.md, "Filter data".
"""

from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_OK, _ERROR, _FORBIDDEN, _NO_TOPIC = 0, 1, 16, 17
_NOT_FOUND, _RETRY, _MOVED = 19, 20, 21
_UNPARSED, _NO_SUBSCRIPTION, _OLD_SUBSCRIPTION, _NO_GROUP, _NO_EXPRESSION = 23, 24, 25, 26, 27
_SQL: Final = "SQL92"
_EXPRESSION_MAX: Final = 4096
_HAS: Final = 4
_OWN_CODE: Final = 8
_OF_HEARTBEAT: Final[dict[str, Any]] = {"sysFlag": 0, "subscription": None}


def _bodies(answer: Frame) -> str:
    found = list(read_records(answer.body)) if answer.code == _OK else []
    return "".join(each.body.decode() for each in found)


async def _selects(site: Site, what: str, expected: str | int, **more: Any) -> None:
    """Pull the whole queue; compare the bodies of the messages, or the code of a refusal."""
    answer = await pull(site, "t", expects=None, **more)
    observed = _bodies(answer) if answer.code in (_OK, _RETRY) else answer.code
    site.compare(f"what {what} selects", expected, observed, answer.remark)


async def pull_cases(site: Site) -> None:
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, "t")
    await make_topic(site, "empty")
    await make_group(site, "g")
    for body, of in (
        ("0", {}), ("1", {"TAGS": "a", "n": "1"}), ("2", {"TAGS": "b", "n": "2"}), ("3", {"TAGS": "a b"}),
    ):  # fmt: skip
        await send(site, "t", body, of=of)
    await _expressions(site)
    await _heartbeats(site)
    await _broadcast(site)
    await _counts(site)
    await _offsets(site)
    await _refusals(site)


async def _expressions(site: Site) -> None:
    filler = "x" * (_EXPRESSION_MAX - 5)
    for text, expected in (
        ("*", "0123"), ("", "0123"), (None, "0123"), (" ", ""), (" || ", ""), ("a", "1"), ("a||", "1"),
        ("||a", "1"), (" b||a ", "12"), ("a b", "3"), ("a || * ", "1"), ("|", ""), ("||", _UNPARSED),
        ("||||", _UNPARSED), ("|||", ""), (f"a || {filler}", "1"), (f"a || {filler}x", _UNPARSED),
        ("b" * _EXPRESSION_MAX, ""), ("b" * (_EXPRESSION_MAX + 1), _UNPARSED),
    ):  # fmt: skip
        await _selects(site, f"the tags {(text or '')[:20]!r}", expected, subscription=text)
        await _selects(site, f"{(text or '')[:20]!r} by the client's own code", "0123", subscription=text,
                       sysFlag=_HAS | _OWN_CODE)  # fmt: skip
    await _selects(site, "no type", "1", subscription="a", expressionType=None)
    for text, expected in (
        ("n = 1", "1"), ("n IS NULL", "03"), ("TRUE", "0123"), ("FALSE", ""), ("", _UNPARSED),
        (None, _UNPARSED), ("*", _UNPARSED), ("n", ""),
    ):  # fmt: skip
        await _selects(site, f"the expression {text}", expected, subscription=text, expressionType=_SQL)
    await _selects(site, "an expression for the client's own code", "0123", subscription="n >",
                   expressionType=_SQL, sysFlag=_HAS | _OWN_CODE)  # fmt: skip
    await _of_retries(site)
    await site.ask("UPDATE_BROKER_CONFIG", "enablePropertyFilter=false")
    await _selects(site, "an expression if there are none", _ERROR, subscription="n = 1", expressionType=_SQL)
    await _selects(site, "tags if there are no expressions", "1", subscription="a")
    for kind, text, code in ((_SQL, "n = 1", _ERROR), ("TAG", "n >", _OK)):
        wanted = {"clientId": "c", "group": "g", "subscriptionData": subscription("t", text, 1, kind)}
        await site.ask("CHECK_CLIENT_CONFIG", wanted, expects=code)
    await site.ask("UPDATE_BROKER_CONFIG", "enablePropertyFilter=true")


async def _of_retries(site: Site) -> None:
    """Messages of a retry topic were selected before, so an expression does not filter them."""
    await send(site, "%RETRY%g", "again", of={"n": "5", "TAGS": "c"})
    for kind, text, code in ((_SQL, "n = 1", _OK), (_SQL, "n >", _UNPARSED), ("TAG", "a", _RETRY)):
        answer = await pull(site, "%RETRY%g", subscription=text, expressionType=kind, expects=code)
        site.compare(f"the retries that {text} selects", "again" if not code else "", _bodies(answer))


async def _heartbeats(site: Site) -> None:
    """A pull without its subscription uses that of the group's latest heartbeat."""
    line = await site.client("member")
    for version, wanted, asked, kind, expected in (
        (1, {"subString": "a"}, 1, "TAG", "1"), (2, {"subString": "a"}, 3, "TAG", _OLD_SUBSCRIPTION),
        (4, {"subString": "*"}, 5, "TAG", "0123"), (6, {"subString": ""}, 7, "TAG", "0123"),
        (8, {"subString": "*", "expressionType": None}, 9, None, "0123"),
        (10, {"subString": "*", "expressionType": None}, 11, _SQL, _OLD_SUBSCRIPTION),
        (12, {"subString": "*"}, 13, _SQL, _OLD_SUBSCRIPTION), (14, {"subString": "*"}, 13, _SQL, "0123"),
        (15, {"subString": "a", "expressionType": None}, 15, None, "1"),
        (16, {"subString": "a", "classFilterMode": True}, 16, "TAG", "0123"),
        (17, {"subString": "n = 2", "expressionType": _SQL}, 17, _SQL, "2"),
        (18, {"subString": "n = 1", "expressionType": _SQL}, 19, _SQL, _OLD_SUBSCRIPTION),
        (20, {"subString": "*", "expressionType": _SQL}, 21, "TAG", _OLD_SUBSCRIPTION),
        (22, {"subString": "||"}, 22, "TAG", _UNPARSED),
    ):  # fmt: skip
        given = {key: each for key, each in {**subscription("t"), **wanted}.items() if each is not None}
        await beat(site, "m@1", "g", [{**given, "subVersion": version}], by=line)
        await _selects(site, f"a heartbeat with {wanted} for {asked}", expected, **_OF_HEARTBEAT,
                       subVersion=asked, expressionType=kind)  # fmt: skip
        await _selects(site, "the tag of the pull itself", "2", subscription="b", subVersion=asked + 1)
    await pull(site, "empty", **_OF_HEARTBEAT, expects=_NO_SUBSCRIPTION)
    await site.ask("UNREGISTER_CLIENT", by=line, clientID="m@1", consumerGroup="g")
    await _selects(site, "a group without members", _NO_SUBSCRIPTION, **_OF_HEARTBEAT)


async def _broadcast(site: Site) -> None:
    """A group consumes in broadcast mode only if it may; the pull of its own subscription is not refused."""
    line: RawClient = await site.client("broadcast")
    for may, model, expected in (
        (True, "BROADCASTING", "0123"), (False, "BROADCASTING", _FORBIDDEN), (False, "CLUSTERING", "0123"),
        (True, "CLUSTERING", "0123"),
    ):  # fmt: skip
        await make_group(site, "b", consumeBroadcastEnable=may)
        await beat(site, "m@1", "b", [subscription("t")], by=line, messageModel=model)
        await _selects(site, f"a group in mode {model}, {may}", expected, group="b", **_OF_HEARTBEAT)
        await _selects(site, f"its own subscription in mode {model}", "0123", group="b")


async def _counts(site: Site) -> None:
    """An answer has at least one message, and at most as many as the pull asks for."""
    for fields, expected in (
        ({"maxMsgNums": 0}, "0"), ({"maxMsgNums": -1}, "0"), ({"maxMsgNums": 2}, "01"),
        ({"maxMsgBytes": 0}, "0"), ({"maxMsgBytes": -1}, "0"), ({"maxMsgBytes": 1 << 30}, "0123"),
    ):  # fmt: skip
        answer = await pull(site, "t", **fields)  # type: ignore[arg-type]  # fields of the request
        site.compare(f"the messages with {fields}", expected, _bodies(answer))
        site.compare("the next offset", str(len(expected)), answer.fields.get("nextBeginOffset"))
    sizes = [len(each.raw) for each in read_records((await pull(site, "t")).body)]
    for count in (2, 3):
        for less, found in ((0, count), (1, count - 1)):
            answer = await pull(site, "t", maxMsgBytes=sum(sizes[:count]) - less)
            site.compare(f"the messages with {count} sizes less {less}", found, len(_bodies(answer)))


async def _offsets(site: Site) -> None:
    """Each offset around the ends of a queue with messages, one without, and what a pull commits."""
    for topic, offset, code, following in (
        ("t", -1, _MOVED, 0), ("t", 3, _OK, 4), ("t", 4, _NOT_FOUND, 4), ("t", 5, _MOVED, 4),
        ("empty", 0, _NOT_FOUND, 0), ("empty", 1, _MOVED, 0), ("empty", -1, _MOVED, 0),
    ):  # fmt: skip
        answer = await pull(site, topic, offset, expects=code)
        end = "4" if topic == "t" else "0"
        site.compare(f"the offsets for {offset} in {topic}", (str(following), "0", end, "0"), tuple(
            answer.fields.get(name)
            for name in ("nextBeginOffset", "minOffset", "maxOffset", "suggestWhichBrokerId")))  # fmt: skip
    await commit(site, "g", "t", 0, 3)
    for flags, offset, expected in ((5, -1, 3), (4, 0, 3), (5, 0, 0), (5, 1, 1), (7, 4, 4)):
        await pull(site, "t", sysFlag=flags, commitOffset=offset)
        answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0)
        what = f"the offset after a pull with the flags {flags} and {offset}"
        site.compare(what, str(expected), answer.fields.get("offset"))


async def _refusals(site: Site) -> None:
    """Of several reasons to refuse a pull, the first one in the documentation decides."""
    await make_topic(site, "closed", perm=2)
    await make_topic(site, "half", perm=4, readQueueNums=2, writeQueueNums=4)
    await make_group(site, "none", consumeEnable=False)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=false")
    rows: tuple[tuple[int, dict[str, Any]], ...] = (
        (_NO_GROUP, {"topic": "t", "group": "unknown"}), (_ERROR, {"topic": "t", "group": "a b"}),
        (_ERROR, {"topic": "t", "group": ""}), (_ERROR, {"topic": "t", "group": "g" * 121}),
        (_NO_GROUP, {"topic": "t", "group": "g" * 120}),
        (_NO_GROUP, {"topic": "unknown", "group": "unknown"}),
        (_FORBIDDEN, {"topic": "unknown", "group": "none"}), (_NO_TOPIC, {"topic": "unknown", "queue": 9}),
        (_FORBIDDEN, {"topic": "closed", "queue": 9}),
        (_ERROR, {"topic": "t", "queue": 1, "subscription": "||"}),
        (_ERROR, {"topic": "t", "queue": -1}), (_ERROR, {"topic": "half", "queue": 2}),
        (_NOT_FOUND, {"topic": "half", "queue": 1}),
        (_UNPARSED, {"topic": "t", "offset": 9, "subscription": "||"}),
        (_ERROR, {"topic": "t", "expressionType": "OTHER"}),
    )  # fmt: skip
    for code, fields in rows:
        await pull(site, expects=code, **fields)
    for permission, code in ((2, _FORBIDDEN), (4, _OK), (0, _FORBIDDEN), (6, _OK)):
        await site.ask("UPDATE_BROKER_CONFIG", f"brokerPermission={permission}")
        await pull(site, "t", expects=code)
        await pull(site, "unknown", group="unknown", expects=code or _NO_GROUP)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=true")
    await pull(site, "t", group="made")
    await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group="made")
    await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group="unmade", expects=_NO_GROUP)


PULL_CASES: Final = Inspection("pull cases", pull_cases, {"property_filter": True})
