"""The event log of a broker: each event of sends, commits, resets, subscriptions, transactions and requests.

See docs/reference/protocol/event-log.md, "Events of a broker", and docs/reference/event-log.md, "Kinds".
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from mqproof.conformance.adapters.inspections.accounts import ADMIN, FILE, SECRET, Visitor
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import offset_message_id
from mqproof.conformance.wire import chapters

_STORING: Final = frozenset({"append", "dispatch", "flush", "heartbeat"})
_TOPIC: Final = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicFilterType": "SINGLE_TAG"}
_END: Final = -1
_CHECKED_S: Final = 40

Row = dict[str, Any]


class Log:
    """The event log of the broker, without what its store writes."""

    def __init__(self, site: Site, line: RawClient) -> None:
        self._site = site
        self._seen = len(site.cluster.events)
        self.line = line

    def compare(self, what: str, expected: Sequence[Row]) -> None:
        """Compare the events since the last call, without their times and numbers."""
        new = self._site.cluster.events[self._seen :]
        self._seen += len(new)
        rows = [msgspec.to_builtins(each) for each in new if each.kind.value not in _STORING]
        for row in rows:
            for name in ("ts", "seq", "node"):
                row.pop(name, None)
        self._site.compare(f"the events of {what}", list(expected), rows)

    def skip(self) -> None:
        """Leave out the events since the last call."""
        self._seen = len(self._site.cluster.events)

    def admin(self, action: str, more: Row | None = None, **columns: str) -> Row:
        attrs = {"action": action, "address": self.line.address, **(more or {})}
        return {"kind": "admin", **columns, "attrs": attrs}


async def recorded_events(site: Site) -> None:
    site.rule = chapters.EVENTS_OF_A_BROKER
    log = Log(site, await site.client())
    await _tables(site, log)
    await _sends(site, log)
    await _commits(site, log)
    await _pulled(site, log)
    await _one_queue(site, log)
    await _of_members(site, log)
    await _clones(site, log)
    await _returned(site, log)
    await _transactions(site, log)
    await _recalled(site, log)


async def _tables(site: Site, log: Log) -> None:
    """Changes of topics, groups and settings; a refused request has no event."""
    await make_topic(site, "t", 3)
    log.compare("a topic", [log.admin("update_and_create_topic", topic="t")])
    for name, code in (("TBW102", 1), ("a b", 1)):
        await make_topic(site, name, expects=code)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="TBW102", expects=1)
    await site.ask("UPDATE_BROKER_CONFIG", "regionId=", expects=1)
    log.compare("refused requests", [])
    listed = [{**_TOPIC, "topicName": name} for name in ("u", "v")]
    await site.ask("UPDATE_AND_CREATE_TOPIC_LIST", {"topicConfigList": listed})
    log.compare("topics", [log.admin("update_and_create_topic_list", topic=name) for name in "uv"])
    await make_group(site, "g")
    groups = [{"groupName": name} for name in ("h", "i")]
    await site.ask("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", {"groupConfigList": groups})
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="i")
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="v")
    log.compare("groups, and deletions", [
        log.admin("update_and_create_subscriptiongroup", group="g"),
        *(log.admin("update_and_create_subscriptiongroup_list", group=name) for name in "hi"),
        log.admin("delete_subscriptiongroup", group="i"), log.admin("delete_topic_in_broker", topic="v"),
    ])  # fmt: skip
    await site.ask("UPDATE_BROKER_CONFIG", b"traceOn = true\nunknown\xc3\xa4=7\nregionId=R=S\n# a=comment\n")
    log.compare("settings", [
        log.admin("update_broker_config", {"settings": "# a,regionId,traceOn,unknown\u00e4"})
    ])  # fmt: skip
    await site.ask("GET_BROKER_CONFIG")
    await site.ask("GET_ALL_TOPIC_CONFIG")
    log.compare("requests that change nothing", [])


def _sent(topic: str, offset: int, place: int, key: str, queue: int = 0, **more: Any) -> Row:
    return {
        "kind": "send_ack", "msg_id": key, "topic": topic, "queue_id": queue, "queue_offset": offset,
        "commit_offset": place, "status": "SEND_OK", **more,
    }  # fmt: skip


async def _sends(site: Site, log: Log) -> None:
    """Each answered message has an event; that of a one-way send has none."""
    answer = await send(site, "t", of={"UNIQ_KEY": "k"})
    place = int(answer.fields["msgId"][-16:], 16)
    log.compare("a send", [_sent("t", 0, place, "k")])
    answer = await send(site, "t", queue=1, of={"WAIT": "false"})
    place = int(answer.fields["msgId"][-16:], 16)
    expected = _sent("t", 0, place, answer.fields["msgId"], 1, attrs={"wait": "false"})
    log.compare("a send that does not wait", [expected])
    parts = [(b"x", 0, {"UNIQ_KEY": "k1"}), (b"y", 0, {})]
    answer = await send(site, "t", batch(parts), name="SEND_BATCH_MESSAGE")
    ids = answer.fields["msgId"].split(",")
    places = [int(each[-16:], 16) for each in ids]
    log.compare("a batch", [_sent("t", 1, places[0], "k1"), _sent("t", 2, places[1], ids[1])])
    fields = {
        "a": "p", "b": "t", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0", "h": "0", "i": "",
    }  # fmt: skip
    log.line.oneway(310, fields, b"one-way")
    await asyncio.sleep(0.1)
    answer = await send(site, "t", of={"DELAY": "18", "UNIQ_KEY": "later"})
    place = int(answer.fields["msgId"][-16:], 16)
    log.compare("a delayed message", [_sent("SCHEDULE_TOPIC_XXXX", 0, place, "later", 17)])
    await send(site, "t", queue=9, expects=1)
    await send(site, "SCHEDULE_TOPIC_XXXX", expects=16)
    log.compare("refused sends", [])


def _set(offset: int, queue: int = 0, *, topic: str = "t", group: str = "g", **attrs: str) -> Row:
    more = {"attrs": attrs} if attrs else {}
    return {
        "kind": "offset_commit", "topic": topic, "queue_id": queue, "queue_offset": offset, "group": group,
        **more,
    }  # fmt: skip


async def _commits(site: Site, log: Log) -> None:
    """A commit is a reset if it goes back, or beyond what the group has received, and is by no member."""
    reset = log.admin("update_consumer_offset", topic="t", group="g")
    await commit(site, "g", "t", 0, 3)
    log.compare("the first commit", [_set(3)])
    for offset, expected in (
        (3, [_set(3)]), (2, [_set(2, reset="true", previous="3"), reset]), (2, [_set(2)]),
        (3, [_set(3, reset="true", previous="2"), reset]), (0, [_set(0, reset="true", previous="3"), reset]),
    ):  # fmt: skip
        await commit(site, "g", "t", 0, offset)
        log.compare(f"a commit of {offset} before any pull", expected)
    await commit(site, "g", "t", 0, -1, expects=1)
    await site.ask("UPDATE_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0, commitOffset=0,
                   onlyForward=True)  # fmt: skip
    log.compare("commits that change nothing", [])


async def _pulled(site: Site, log: Log) -> None:
    """What the group has received is progress; a pull may commit, too."""
    reset = log.admin("update_consumer_offset", topic="t", group="g")
    await pull(site, "t", maxMsgNums=2)
    log.compare("a pull", [])
    for offset, expected in (
        (2, [_set(2)]), (3, [_set(3, reset="true", previous="2"), reset]),
        (1, [_set(1, reset="true", previous="3"), reset]), (2, [_set(2)]),
    ):  # fmt: skip
        await commit(site, "g", "t", 0, offset)
        log.compare(f"a commit of {offset} after a pull of 2", expected)
    await pull(site, "t", sysFlag=5, commitOffset=1)
    log.compare("a pull that commits", [_set(1)])
    line = await site.client("member")
    await beat(site, "m@1", "g", [subscription("t")], by=line)
    started = {"kind": "subscribe", "topic": "t", "group": "g", "client": "m@1",
               "attrs": {"type": "TAG", "expression": "*"}}  # fmt: skip
    log.compare("a member", [started])
    for offset in (0, 4):
        await site.ask("UPDATE_CONSUMER_OFFSET", by=line, consumerGroup="g", topic="t", queueId=0,
                       commitOffset=offset)  # fmt: skip
        log.compare(f"a commit of {offset} by a member", [_set(offset)])
    await _subscriptions(site, log, line)


async def _subscriptions(site: Site, log: Log, line: RawClient) -> None:
    """Each change of a subscription has an event, and the end of each."""

    def changed(topic: str, text: str, kind: str = "TAG") -> Row:
        return {"kind": "subscribe", "topic": topic, "group": "g", "client": "m@1",
                "attrs": {"type": kind, "expression": text}}  # fmt: skip

    def ended(topic: str, **more: str) -> Row:
        return {"kind": "unsubscribe", "topic": topic, "group": "g", **more}

    code = {**subscription("t", "A", 5), "classFilterMode": True}
    for wanted, expected in (
        ([subscription("t", "*", 2)], []), ([subscription("t", "a || b", 3)], [changed("t", "a || b")]),
        ([subscription("u", "*", 4), subscription("t", "a || b", 4)], [changed("u", "*")]),
        ([code], [ended("u", client="m@1"), changed("t", "A", "CLASS")]), ([code], []),
    ):  # fmt: skip
        await beat(site, "m@1", "g", wanted, by=line)
        log.compare(f"a heartbeat with {len(wanted)} subscriptions", expected)
    line.close()
    await asyncio.sleep(1)
    log.compare("the end of the last member", [ended("t")])


async def _one_queue(site: Site, log: Log) -> None:
    """A reset of one queue is committed by the broker, which records it only if the offset changes."""
    reset = log.admin("invoke_broker_to_reset_offset", topic="t", group="g")
    asked: dict[str, Any] = {"topic": "t", "group": "g", "timestamp": _END, "isForce": True}
    for fields, expected in (
        ({"queueId": 0, "offset": 1}, [_set(1, reset="true", previous="4")]),
        ({"queueId": 0, "offset": 1}, []),
        ({"queueId": 1, "offset": 1}, [_set(1, 1, reset="true")]),
        ({"queueId": 1, "offset": 0}, [_set(0, 1, reset="true", previous="1")]),
    ):  # fmt: skip
        await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **{**asked, **fields})
        log.compare(f"a reset of {fields}", [*expected, reset])
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **asked, queueId=0, offset=99, expects=1)
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **asked, expects=1)
    log.compare("refused resets", [])


async def _of_members(site: Site, log: Log) -> None:
    """Members carry out a reset by the first commit that goes back, or that has the requested offset."""
    await make_topic(site, "w", 2)
    for number in range(4):
        await send(site, "w", queue=number % 2)
    line = await site.client("member")
    await beat(site, "m@1", "g", [subscription("w")], by=line)
    for queue in range(2):
        await commit(site, "g", "w", queue, 2)
    log.skip()
    reset = log.admin("invoke_broker_to_reset_offset", topic="w", group="g")
    asked: dict[str, Any] = {"topic": "w", "group": "g", "isForce": True}
    for timestamp, commits in (
        (0, ((0, 2, None), (0, 0, "2"), (0, 1, None), (0, 0, None), (1, 1, "2"), (1, 0, None))),
        (_END, ((0, 1, None), (0, 2, "1"), (0, 1, None), (1, 3, None), (1, 2, None))),
    ):
        await site.ask(
            "INVOKE_BROKER_TO_RESET_OFFSET", topic="w", group="g", timestamp=timestamp, isForce=True
        )
        log.compare(f"a reset of members to {timestamp}", [reset])
        for queue, offset, previous in commits:
            await site.ask("UPDATE_CONSUMER_OFFSET", by=line, consumerGroup="g", topic="w", queueId=queue,
                           commitOffset=offset)  # fmt: skip
            marks = {"reset": "true", "previous": previous} if previous else {}
            log.compare(f"a commit of {offset} after it", [_set(offset, queue, topic="w", **marks)])
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **asked, timestamp=0)
    line.close()
    await asyncio.sleep(1)
    line = await site.client("member")
    await beat(site, "m@1", "g", [subscription("w")], by=line)
    log.skip()
    await site.ask("UPDATE_CONSUMER_OFFSET", by=line, consumerGroup="g", topic="w", queueId=0, commitOffset=0)
    log.compare("a commit of a later member", [_set(0, topic="w")])
    line.close()
    await asyncio.sleep(1)
    log.skip()


async def _clones(site: Site, log: Log) -> None:
    """A clone has an event, and one for each offset that it changes."""
    for topic, offset in (("c1", 1), ("c2", 2)):
        await make_topic(site, topic)
        await commit(site, "from", topic, 0, offset)
    log.skip()
    for of, changed in (("c1", (("c1", 1, None),)), ("c1", ()), (None, (("c2", 2, None),))):
        await site.ask("CLONE_GROUP_OFFSET", srcGroup="from", destGroup="to", topic=of, offline=False)
        sets = [_set(offset, topic=topic, group="to", reset="true") for topic, offset, _ in changed]
        columns = {"group": "to", **({"topic": of} if of else {})}
        log.compare(
            f"a clone of {of}", [*sets, log.admin("clone_group_offset", {"source": "from"}, **columns)]
        )
    await commit(site, "to", "c1", 0, 0)
    log.skip()
    await site.ask("CLONE_GROUP_OFFSET", srcGroup="from", destGroup="to", offline=False)
    again = _set(1, topic="c1", group="to", reset="true", previous="0")
    log.compare("another clone", [again, log.admin("clone_group_offset", {"source": "from"}, group="to")])
    await site.ask("CLONE_GROUP_OFFSET", srcGroup="from", destGroup="a b", offline=False, expects=1)
    log.compare("a refused clone", [])


async def _returned(site: Site, log: Log) -> None:
    """A message that a consumer sends back is a retry of the copy that failed, or a dead letter."""
    first, other = (queue_of(site, "t", queue)[0] for queue in (0, 1))
    id_of_other = offset_message_id(str(site.broker), other.commit_offset)
    for record, queue, id_, level, most, kind in (
        (first, 0, "k", 1, 16, "retry"), (other, 1, id_of_other, 0, 1, "retry"),
        (first, 0, "k", 1, 0, "dead_letter"), (first, 0, "k", -1, 16, "dead_letter"),
    ):  # fmt: skip
        await site.ask(
            "CONSUMER_SEND_MSG_BACK", offset=record.commit_offset, group="g", delayLevel=level,
            originMsgId="m", originTopic="t", unitMode=False, maxReconsumeTimes=most,
        )  # fmt: skip
        log.compare(f"a message that was sent back with {level}, {most}", [{
            "kind": kind, "msg_id": id_, "topic": "t", "queue_id": queue, "queue_offset": 0, "group": "g",
        }])  # fmt: skip


async def _transactions(site: Site, log: Log) -> None:
    """A half message, its checks and its end, each with the key and the topic of the message."""
    line = await site.client("producer")
    await beat(site, "p@1", "", [], producers=("p",), by=line)
    log.skip()

    def event(kind: str, key: str) -> Row:
        return {"kind": kind, "msg_id": key, "topic": "t"}

    for number, (flag, kind) in enumerate(((8, "commit"), (12, "rollback"), (8, "commit"))):
        key = f"half{number}"
        answer = await send(site, "t", key, f=4, of={"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": key})
        place = int(answer.fields["msgId"][-16:], 16)
        offset = int(answer.fields["queueOffset"])
        stored = _sent("RMQ_SYS_TRANS_HALF_TOPIC", offset, place, key)
        log.compare("a half message", [event("half", key), stored])
        if number == 2:
            await asyncio.sleep(_CHECKED_S)
            log.compare("a check", [event("check", key)])
        end: dict[str, Any] = {
            "producerGroup": "p", "tranStateTableOffset": offset, "commitLogOffset": place,
            "commitOrRollback": flag, "msgId": key, "transactionId": key,
        }  # fmt: skip
        await site.ask("END_TRANSACTION", **{**end, "msgId": "other"}, expects=1)
        log.compare("a refused end", [])
        await site.ask("END_TRANSACTION", **end)
        log.compare("an end", [event(kind, key)])
        await site.ask("END_TRANSACTION", **end)
        log.compare("a repeated end", [])


async def _recalled(site: Site, log: Log) -> None:
    answer = await send(site, "t", of={"TIMER_DELAY_SEC": "100", "UNIQ_KEY": "timed"})
    place = int(answer.fields["msgId"][-16:], 16)
    log.compare("a message with a time", [_sent("rmq_sys_wheel_timer", 0, place, "timed")])
    for code, expected in (
        (0, [{"kind": "recall", "msg_id": "timed", "topic": "t", "status": "PUT_OK"}]), (604, []),
    ):  # fmt: skip
        await site.ask("RECALL_MESSAGE", expects=code, producerGroup="p", topic="t",
                       recallHandle=answer.fields["recallHandle"])  # fmt: skip
        log.compare(f"a recall with the answer {code}", expected)


async def of_accounts(site: Site) -> None:
    """A request that changes accounts names its own account and the changed one, but no secret."""
    site.rule = chapters.EVENTS_OF_A_BROKER
    line = await site.client()
    visitor, log = Visitor(site, line), Log(site, line)
    for name, fields, body, changed in (
        ("UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": "account1", "secretKey": SECRET}, b"", "account1"),
        ("UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", {"globalWhiteAddrs": "10.0.9.9"}, b"", None),
        ("DELETE_ACL_CONFIG", {"accessKey": "account1"}, b"", "account1"),
        ("AUTH_CREATE_USER", {"username": "account2"}, {"password": SECRET}, "account2"),
        ("AUTH_UPDATE_USER", {"username": "account2"}, {"userType": "Super"}, "account2"),
        ("AUTH_CREATE_ACL", {"subject": "User:account2"}, _POLICIES, "account2"),
        ("AUTH_UPDATE_ACL", {"subject": "User:account2"}, _POLICIES, "account2"),
        ("AUTH_DELETE_ACL", {"subject": "User:account2", "resource": "Topic:t"}, b"", "account2"),
        ("AUTH_DELETE_USER", {"username": "account2"}, b"", "account2"),
    ):  # fmt: skip
        given: dict[str, Any] = fields
        answer = await visitor.ask(ADMIN, name, body, **given)
        site.compare(f"the code of {name}", 0, answer.code, answer.remark)
        more = {"account": ADMIN.key} | ({"changed_account": changed} if changed else {})
        log.compare(name, [log.admin(name.lower(), more)])
    answer = await visitor.ask(ADMIN, "DELETE_ACL_CONFIG", accessKey="unknown")
    site.compare("whether an unknown account is deleted", False, answer.code == 0)
    log.compare("a refused request", [])


_POLICIES: Final = {"subject": "User:account2", "policies": [{"policyType": "Custom", "entries": [
    {"resource": "Topic:t", "actions": ["Pub"], "decision": "Allow"}]}]}  # fmt: skip
RECORDED_EVENTS: Final = Inspection("recorded events", recorded_events)
RECORDED_ACCOUNTS: Final = Inspection(
    "recorded changes of accounts",
    of_accounts,
    {"acl_enabled": True},
    files={"/store/config/plain_acl.yml": FILE},
)
