"""A broker as a target of the administration suite, and the reference as one."""

import asyncio
import random
from itertools import cycle
from typing import Final

from mqproof.conformance.adapters.brokers.environments import Environment, OnEnvironment
from mqproof.conformance.engine.broker_faults import CRASHES, ENDS, BrokerFault
from mqproof.conformance.engine.targets import REFERENCE, TargetError
from mqproof.conformance.suites.admin.target import GROUPS, TOPICS
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import SubscriptionGroup, SubscriptionGroups, TopicConfigs, TopicRoute
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    PULL_HAS_SUBSCRIPTION,
    CloneOffsetRequest,
    PullRequest,
    QueryMessageRequest,
    RouteRequest,
    TopicRequest,
    UpdateOffsetRequest,
    UpdateTopicRequest,
    ViewMessageRequest,
)
from mqproof.impl.remoting.message import parse_offset_message_id
from mqproof.reference.rules import administration
from mqproof.reference.rules.administration import Group, Topic

_LOOKS: Final = 600
_LOOK_S: Final = 0.05
"""The pause between queries: name servers receive topics, and the index receives messages, with a delay."""
_COUNT: Final = 32
_FOREVER_MS: Final = 1 << 62
_EMPTY: Final = (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED)


class BrokerAdmin(OnEnvironment):
    """The target of the admin suite that drives a broker in an environment."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.capabilities = environment.faults
        # Each release knows one of the flags; our broker accepts either, so that each one is tested alone.
        alone = (("cleanOffset",), ("removeOffset",))
        self._flags = cycle(alone if environment.is_simulated else (("cleanOffset", "removeOffset"),))

    def open(self) -> None:
        self._arrive()

    def inject(self, fault: BrokerFault) -> None:
        before = {topic: self.route(topic) for topic in TOPICS}
        super().inject(fault)
        for topic, settings in before.items():
            self._environment.run(self._until_routed(topic, settings))

    def make_topic(self, topic: str, settings: Topic) -> None:
        self._environment.run(self._make_topic(topic, settings))

    def delete_topic(self, topic: str) -> None:
        self._environment.run(self._delete_topic(topic))

    def show_topic(self, topic: str) -> Topic | None:
        return self._environment.run(self._show_topic(topic))

    def route(self, topic: str) -> Topic | None:
        return self._environment.run(self._route(topic))

    def make_group(self, group: str, settings: Group) -> None:
        made = SubscriptionGroup(
            group_name=self._named(group),
            consume_enable=settings.consumes,
            retry_max_times=settings.retries_max,
        )
        self._environment.run(self._caller.make_group(made))

    def delete_group(self, group: str) -> None:
        fields = {"groupName": self._named(group), **dict.fromkeys(next(self._flags), "true")}
        self._environment.run(self._caller.request_fields(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields))

    def show_group(self, group: str) -> Group | None:
        answer = self._environment.run(self._caller.request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
        table = java_json.read(SubscriptionGroups, answer.body).subscription_group_table
        found = table.get(self._named(group))
        return Group(found.consume_enable, found.retry_max_times) if found else None

    def send(self, topic: str, queue_id: int, msg_id: str, keys: str) -> str | None:
        return self._environment.run(self._send(topic, queue_id, msg_id, keys))

    def pull(self, group: str, topic: str, queue_id: int) -> tuple[str, ...] | None:
        return self._environment.run(self._pull(group, topic, queue_id))

    def by_key(self, topic: str, key: str) -> tuple[str, ...]:
        return self._environment.run(self._by_key(topic, key))

    def by_id(self, offset_message_id: str) -> str | None:
        return self._environment.run(self._by_id(offset_message_id))

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        header = UpdateOffsetRequest(self._named(group), self._named(topic), queue_id, offset)
        answer = self._environment.run(
            self._caller.request(RequestCode.UPDATE_CONSUMER_OFFSET, header, accepts=())
        )
        return answer.code == ResponseCode.SUCCESS

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        return self._environment.run(self._caller.committed(self._named(group), self._named(topic), queue_id))

    def clone_offsets(self, source: str, destination: str, topic: str) -> None:
        header = CloneOffsetRequest(self._named(source), self._named(destination), self._named(topic))
        self._environment.run(self._caller.request(RequestCode.CLONE_GROUP_OFFSET, header))

    async def _leave(self) -> None:
        await self._caller.forget(list(map(self._named, TOPICS)), list(map(self._named, GROUPS)))
        await self._caller.stop()

    # Topics

    async def _make_topic(self, topic: str, settings: Topic) -> None:
        header = UpdateTopicRequest(
            self._named(topic), "TBW102", settings.reads, settings.writes, settings.perm
        )
        await self._caller.request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        await self._until_routed(topic, settings)

    async def _delete_topic(self, topic: str) -> None:
        header = TopicRequest(self._named(topic))
        await self._caller.request(RequestCode.DELETE_TOPIC_IN_BROKER, header)
        for _ in range(_LOOKS):
            # A registration that was in progress may add the topic again.
            name_server = self._caller.name_server
            await self._caller.request(RequestCode.DELETE_TOPIC_IN_NAMESRV, header, to=name_server)
            await asyncio.sleep(_LOOK_S)
            if await self._route(topic) is None:
                return

    async def _show_topic(self, topic: str) -> Topic | None:
        answer = await self._caller.request(RequestCode.GET_ALL_TOPIC_CONFIG)
        found = java_json.read(TopicConfigs, answer.body).topic_config_table.get(self._named(topic))
        return Topic(found.read_queue_nums, found.write_queue_nums, found.perm) if found else None

    async def _route(self, topic: str) -> Topic | None:
        answer = await self._caller.request(
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            RouteRequest(self._named(topic)),
            accepts=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
            to=self._caller.name_server,
        )
        if answer.code != ResponseCode.SUCCESS:
            return None
        queues = java_json.read(TopicRoute, answer.body).queue_datas
        own = [each for each in queues if each.broker_name == self._caller.broker_name]
        return next((Topic(each.read_queue_nums, each.write_queue_nums, each.perm) for each in own), None)

    async def _until_routed(self, topic: str, settings: Topic | None) -> None:
        for _ in range(_LOOKS):
            if await self._route(topic) == settings:
                return
            await asyncio.sleep(_LOOK_S)

    # Messages

    async def _send(self, topic: str, queue_id: int, msg_id: str, keys: str) -> str | None:
        named = self._named(topic)
        try:
            sent = await self._caller.send(named, queue_id, self._named(msg_id), key=keys, template=named)
        except TargetError as error:
            if "is refused" in str(error):
                return None
            raise
        for _ in range(_LOOKS):
            if msg_id in await self._by_key(topic, msg_id):
                break
            await asyncio.sleep(_LOOK_S)
        return sent.msg_id

    async def _pull(self, group: str, topic: str, queue_id: int) -> tuple[str, ...] | None:
        found: list[str] = []
        while True:
            header = PullRequest(
                consumer_group=self._named(group), topic=self._named(topic), queue_id=queue_id,
                queue_offset=len(found), max_msg_nums=_COUNT, sys_flag=PULL_HAS_SUBSCRIPTION, commit_offset=0,
                suspend_timeout_millis=0, sub_version=0, subscription="*", expression_type="TAG",
            )  # fmt: skip
            answer = await self._caller.request(RequestCode.PULL_MESSAGE, header, accepts=())
            if answer.code in _EMPTY:
                return tuple(found)
            if answer.code != ResponseCode.SUCCESS:
                return None
            found += self._ids(answer.body)

    async def _by_key(self, topic: str, key: str) -> tuple[str, ...]:
        unique = key.startswith("m")
        header = QueryMessageRequest(
            self._named(topic), self._named(key) if unique else key, _COUNT, 0, _FOREVER_MS
        )
        fields = {**headers.write(header), **({"_UNIQUE_KEY_QUERY": "true"} if unique else {})}
        codes = (ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND)
        answer = await self._caller.request_fields(RequestCode.QUERY_MESSAGE, fields, accepts=codes)
        # Released brokers return a message twice if two of its keys have the same hash.
        return tuple(dict.fromkeys(self._ids(answer.body))) if answer.code == ResponseCode.SUCCESS else ()

    async def _by_id(self, offset_message_id: str) -> str | None:
        _, offset = parse_offset_message_id(offset_message_id)
        answer = await self._caller.request(
            RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest(offset), accepts=()
        )
        found = self._ids(answer.body) if answer.code == ResponseCode.SUCCESS else ()
        return found[0] if found else None

    def _ids(self, body: bytes) -> tuple[str, ...]:
        bodies = [stored.message.body.decode() for stored in read_records(body)]
        return tuple(text.removeprefix(f"{self._caller.prefix}_") for text in bodies)

    def _named(self, name: str) -> str:
        return f"{self._caller.prefix}_{name}"


class ReferenceAdmin:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    capabilities = frozenset(BrokerFault)

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._groups: dict[str, Group] = {}
        self._queues: dict[tuple[str, int], list[str]] = {}
        self._log: list[tuple[str, str, set[str]]] = []
        self._offsets: dict[tuple[str, str, int], int] = {}
        self._written = dict(self._offsets)

    def make_topic(self, topic: str, settings: Topic) -> None:
        self._topics[topic] = settings

    def delete_topic(self, topic: str) -> None:
        self._topics.pop(topic, None)
        self._queues = {key: ids for key, ids in self._queues.items() if key[0] != topic}
        if self._chance.random() < 0.5:
            self._offsets = {key: at for key, at in self._offsets.items() if key[1] != topic}

    def inject(self, fault: BrokerFault) -> None:
        if fault in CRASHES:
            self._offsets = dict(self._written)
        elif fault in ENDS:
            self._written = dict(self._offsets)

    def show_topic(self, topic: str) -> Topic | None:
        return self._topics.get(topic)

    route = show_topic

    def make_group(self, group: str, settings: Group) -> None:
        self._groups[group] = settings

    def delete_group(self, group: str) -> None:
        self._groups.pop(group, None)
        self._offsets = {key: at for key, at in self._offsets.items() if key[0] != group}

    def show_group(self, group: str) -> Group | None:
        return self._groups.get(group)

    def send(self, topic: str, queue_id: int, msg_id: str, keys: str) -> str | None:
        if not administration.may_send(self._topics.get(topic), queue_id):
            return None
        self._queues.setdefault((topic, queue_id), []).append(msg_id)
        self._log.append((msg_id, topic, {msg_id, *keys.split()}))
        return msg_id

    def pull(self, group: str, topic: str, queue_id: int) -> tuple[str, ...] | None:
        if not administration.may_pull(self._topics.get(topic), self._groups.get(group), queue_id):
            return None
        return tuple(self._queues.get((topic, queue_id), ()))

    def by_key(self, topic: str, key: str) -> tuple[str, ...]:
        return tuple(msg_id for msg_id, of, keys in self._log if of == topic and key in keys)

    def by_id(self, offset_message_id: str) -> str | None:
        return offset_message_id

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        self._offsets[group, topic, queue_id] = offset
        if self._chance.random() < 0.3:
            self._written = dict(self._offsets)
        return True

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        return self._offsets.get((group, topic, queue_id), 0)

    def clone_offsets(self, source: str, destination: str, topic: str) -> None:
        cloned = {
            queue: at for (group, of, queue), at in self._offsets.items() if (group, of) == (source, topic)
        }
        if cloned:
            others = {key: at for key, at in self._offsets.items() if key[:2] != (destination, topic)}
            self._offsets = others | {(destination, topic, queue): at for queue, at in cloned.items()}

    def close(self) -> None:
        pass
