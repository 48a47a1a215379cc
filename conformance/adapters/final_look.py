"""Reads everything of an example back by every way of access, at its end and after restarts.

Each way must agree with the others, and what a restart finds with what was there before. The rules for every
answer (`conformance/answers`) compare the records with the messages that were sent.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.stored_record import StoredRecord, java_hash, read_records
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumeStats,
    MessageQueue,
    QueueEntries,
    TimeSpans,
    TopicRoute,
    TopicStats,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.reference.rules.pulling import found_by_time

_GROUP: Final = "TOOLS_CONSUMER"
"""A group that brokers have from their first start."""
_PULLS_MAX: Final = 200
_COUNT: Final = 32
_LOOKS: Final = 100
_LOOK_S: Final = 0.05
_SECOND_MS: Final = 1000
_READS: Final = 4
"""The permission to read."""

Queue = tuple[str, int]


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """One queue, read from its beginning to its end."""

    begin: int
    end: int
    records: tuple[StoredRecord, ...]

    @property
    def times(self) -> list[tuple[int, int]]:
        return [(record.queue_offset, record.store_ms) for record in self.records]

    def time_before(self, offset: int) -> int | None:
        """Return the store time of the message before the offset; None if it is not there."""
        return next((ms for at, ms in self.times if at == offset - 1), None)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the broker has of an example."""

    topics: Mapping[str, dict[str, Any]]
    groups: Mapping[str, dict[str, Any]]
    queues: Mapping[Queue, QueueSeen]
    offsets: Mapping[str, Mapping[str, int]]
    """The committed offsets by `TOPIC@GROUP` and queue."""


class FinalLook:
    """Looks at the topics and groups whose names contain the prefix of the caller."""

    def __init__(self, caller: Caller, watch: Watch, broker_id: int = 0) -> None:
        """`broker_id`: that of the broker which the caller asks."""
        self._caller = caller
        self._watch = watch
        self._broker_id = broker_id

    async def look(self) -> Seen:
        """Read everything; report what does not agree."""
        topics = self._own(await self._table(RequestCode.GET_ALL_TOPIC_CONFIG, "topicConfigTable"))
        groups = self._own(
            await self._table(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "subscriptionGroupTable")
        )
        offsets = self._own(await self._table(RequestCode.GET_ALL_CONSUMER_OFFSET, "offsetTable"))
        queues = {}
        for topic, config in topics.items():
            if not config["perm"] & _READS:
                continue
            for queue_id in range(config["readQueueNums"]):
                queues[topic, queue_id] = await self._queue(topic, queue_id)
            await self._stats(topic, config, queues)
            await self._route(topic, config)
        for key, table in offsets.items():
            topic, _, group = key.partition("@")
            if topic in topics and group in groups:
                await self._progress(topic, group, table, queues)
        return Seen(topics, groups, queues, offsets)

    def compare(self, before: Seen, after: Seen, what: str = "after a restart") -> None:
        """Report what a restart changed, or what another broker has differently."""
        self._watch.found(what, _changed(before, after))

    async def _table(self, code: RequestCode, name: str) -> dict[str, Any]:
        answer = await self._caller.request(code)
        table: dict[str, Any] = java_json.read(dict[str, Any], answer.body)[name]
        return table

    def _own(self, table: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in table.items() if self._caller.prefix in name}

    # Queues

    async def _queue(self, topic: str, queue_id: int) -> QueueSeen:
        begin = await self._caller.offset(RequestCode.GET_MIN_OFFSET, topic, queue_id)
        end = await self._caller.offset(RequestCode.GET_MAX_OFFSET, topic, queue_id)
        seen = QueueSeen(begin, end, tuple(await self._records(topic, queue_id, begin, end)))
        what = f"the last look at queue {queue_id} of {topic}"
        offsets = [offset for offset, _ in seen.times]
        if offsets != list(range(begin, end)):
            wrong = Wrong(chapters.ORDER_AND_OFFSETS, f"offsets {offsets}, expected {begin} to {end - 1}")
            self._watch.found(what, [wrong])
            return seen
        answer = await self._caller.request(
            RequestCode.GET_EARLIEST_MSG_STORETIME, headers.QueueRequest(topic, queue_id)
        )
        earliest = seen.records[0].store_ms if seen.records else -1
        if answer.fields.get("timestamp") != str(earliest):
            text = f"earliest store time {answer.fields.get('timestamp')}, expected {earliest}"
            self._watch.found(what, [Wrong(chapters.OFFSET_REQUESTS, text)])
        await self._by_time(topic, queue_id, seen)
        if seen.records:
            await self._entries(topic, queue_id, seen)
            for record in {0: seen.records[0], 1: seen.records[-1]}.values():
                await self._by_id_and_key(record)
        return seen

    async def _records(self, topic: str, queue_id: int, begin: int, end: int) -> list[StoredRecord]:
        found: list[StoredRecord] = []
        offset = begin
        for _ in range(_PULLS_MAX):
            if offset >= end:
                break
            header = headers.PullRequest(
                consumer_group=_GROUP, topic=topic, queue_id=queue_id, queue_offset=offset,
                max_msg_nums=_COUNT, sys_flag=headers.PULL_HAS_SUBSCRIPTION, commit_offset=0,
                suspend_timeout_millis=0, sub_version=0, subscription="*", expression_type="TAG",
            )  # fmt: skip
            answer = await self._caller.request(RequestCode.PULL_MESSAGE, header, accepts=())
            if answer.code not in (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY):
                break
            found += [each for each in read_records(answer.body) if each.queue_offset < end]
            offset = headers.read(headers.PullResponse, answer.fields).next_begin_offset
        return found

    async def _by_time(self, topic: str, queue_id: int, seen: QueueSeen) -> None:
        """Search by the times around the first, a middle and the last message."""
        times = seen.times
        around = sorted({times[at][1] for at in (0, len(times) // 2, -1)}) if times else [1]
        for asked in sorted({ms + shift for ms in around for shift in (-1, 0, 1)}):
            header = headers.SearchOffsetRequest(topic, queue_id, asked)
            answer = await self._caller.request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
            found = headers.read(headers.OffsetResponse, answer.fields).offset
            if found not in (allowed := found_by_time(times, asked)) and found < seen.end:
                text = f"a search for the time {asked} finds {found}, expected one of {sorted(allowed)}"
                self._watch.found(f"queue {queue_id} of {topic}", [Wrong(chapters.OFFSET_REQUESTS, text)])

    async def _entries(self, topic: str, queue_id: int, seen: QueueSeen) -> None:
        header = headers.QueueEntriesRequest(topic, queue_id, seen.begin, len(seen.records))
        answer = await self._caller.request(RequestCode.QUERY_CONSUME_QUEUE, header)
        body = java_json.read(QueueEntries, answer.body)
        entries = [(each.physic_offset, each.physic_size, each.tags_code) for each in body.queue_data]
        expected = [
            (each.commit_offset, len(each.raw), java_hash(each.properties.get("TAGS", "")))
            for each in seen.records
        ]
        if entries != expected or body.min_queue_index != seen.begin or body.max_queue_index < seen.end:
            text = (
                f"entries {body.min_queue_index} to {body.max_queue_index} are {entries}, the messages"
                f" {seen.begin} to {seen.end} are {expected}"
            )
            wrong = Wrong(chapters.STATISTICS_OF_A_BROKER, text)
            self._watch.found(f"the entries of queue {queue_id} of {topic}", [wrong])

    async def _by_id_and_key(self, record: StoredRecord) -> None:
        """Find the record by its place in the log, and by its keys within the moment when it was stored."""
        request = headers.ViewMessageRequest(record.commit_offset)
        answer = await self._caller.request(RequestCode.VIEW_MESSAGE_BY_ID, request, accepts=())
        if answer.body != record.raw:
            text = f"code {answer.code} for the message at commit offset {record.commit_offset}"
            self._watch.found("a query by message id", [Wrong(chapters.MESSAGE_QUERIES, text)])
        if unique := record.properties.get("UNIQ_KEY"):
            await self._by_key(record, unique, is_unique=True)
        if words := record.properties.get("KEYS", "").split():
            await self._by_key(record, words[-1], is_unique=False)

    async def _by_key(self, record: StoredRecord, key: str, *, is_unique: bool) -> None:
        # The index of released brokers has whole seconds.
        around_ms = 0 if self._watch.is_exact else _SECOND_MS
        period = (record.store_ms - around_ms, record.store_ms + around_ms)
        header = headers.QueryMessageRequest(record.topic, key, _COUNT, *period)
        fields = {**headers.write(header), **({"_UNIQUE_KEY_QUERY": "true"} if is_unique else {})}
        for _ in range(_LOOKS):
            answer = await self._caller.request_fields(RequestCode.QUERY_MESSAGE, fields, accepts=())
            if any(each.raw == record.raw for each in read_records(answer.body)):
                return
            await asyncio.sleep(_LOOK_S)
        text = f"the message at commit offset {record.commit_offset} is not found by its key {key!r}"
        self._watch.found("a query by key", [Wrong(chapters.KEY_INDEX, text)])

    # Tables about queues

    async def _stats(self, topic: str, config: Mapping[str, Any], queues: Mapping[Queue, QueueSeen]) -> None:
        answer = await self._caller.request(
            RequestCode.GET_TOPIC_STATS_INFO, headers.TopicRequest(topic), accepts=()
        )
        if answer.code != ResponseCode.SUCCESS:
            text = f"code {answer.code}, {answer.remark}"
            self._watch.found(f"the statistics of {topic}", [Wrong(chapters.ADMINISTRATION_OF_OFFSETS, text)])
            return
        table = java_json.read(TopicStats, answer.body).offset_table
        extents = {key.as_a(MessageQueue).queue_id: extent for key, extent in table.items()}
        wrong = []
        write, read = config["writeQueueNums"], config["readQueueNums"]
        counts = (write,) if self._watch.is_exact else (write, max(write, read))  # the latter in 5.x
        if sorted(extents) not in [list(range(count)) for count in counts]:
            wrong.append(f"queues {sorted(extents)}, the topic has {config['writeQueueNums']} write queues")
        for queue_id, extent in extents.items():
            seen = queues.get((topic, queue_id))
            if seen is None or extent.max_offset > seen.end:
                continue  # not readable, or grown meanwhile
            expected = (seen.begin, seen.end, seen.records[-1].store_ms if seen.records else 0)
            observed = (extent.min_offset, extent.max_offset, extent.last_update_timestamp)
            if observed != expected:
                wrong.append(f"queue {queue_id} is {observed}, expected {expected}")
        rule = chapters.ADMINISTRATION_OF_OFFSETS
        self._watch.found(f"the statistics of {topic}", [Wrong(rule, text) for text in wrong])

    async def _route(self, topic: str, config: Mapping[str, Any]) -> None:
        expected = (config["readQueueNums"], config["writeQueueNums"], config["perm"])
        observed: object = None
        for _ in range(_LOOKS):
            answer = await self._caller.request(
                RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.RouteRequest(topic), accepts=(),
                to=self._caller.name_server,
            )  # fmt: skip
            if answer.code == ResponseCode.SUCCESS:
                route = java_json.read(TopicRoute, answer.body)
                own = [each for each in route.queue_datas if each.broker_name == self._caller.broker_name]
                observed = [(each.read_queue_nums, each.write_queue_nums, each.perm) for each in own]
                addresses = [each.broker_addrs.get(self._broker_id) for each in route.broker_datas]
                if observed == [expected] and str(self._caller.broker) in addresses:
                    return
            await asyncio.sleep(_LOOK_S)
        text = f"{observed}, the broker has {expected}"
        self._watch.found(f"the route of {topic}", [Wrong(chapters.NAME_SERVER, text)])

    async def _progress(
        self, topic: str, group: str, table: Mapping[str, int], queues: Mapping[Queue, QueueSeen]
    ) -> None:
        """Compare the tables about a group's offsets in a topic."""
        wrong = []
        for name, committed in table.items():
            if await self._caller.committed(group, topic, int(name)) != committed:
                wrong.append(f"a query for queue {name} does not return {committed}")
        header = headers.ConsumeStatsRequest(group, topic)
        answer = await self._caller.request(RequestCode.GET_CONSUME_STATS, header)
        for key, progress in java_json.read(ConsumeStats, answer.body).offset_table.items():
            queue_id = key.as_a(MessageQueue).queue_id
            seen = queues.get((topic, queue_id))
            if seen is None or progress.broker_offset > seen.end:
                continue
            offset = table.get(str(queue_id), 0)
            expected = (seen.end, offset, seen.time_before(offset) or 0)
            observed = (progress.broker_offset, progress.consumer_offset, progress.last_timestamp)
            if observed != expected:
                wrong.append(f"the progress in queue {queue_id} is {observed}, expected {expected}")
        wrong += [text async for text in self._spans(topic, group, table, queues)]
        rule = chapters.ADMINISTRATION_OF_OFFSETS
        self._watch.found(f"the offsets of {group} in {topic}", [Wrong(rule, text) for text in wrong])

    async def _spans(
        self, topic: str, group: str, table: Mapping[str, int], queues: Mapping[Queue, QueueSeen]
    ) -> AsyncIterator[str]:
        header = headers.TopicGroupRequest(topic, group)
        answer = await self._caller.request(RequestCode.QUERY_CONSUME_TIME_SPAN, header)
        for span in java_json.read(TimeSpans, answer.body).consume_time_span_set:
            seen = queues.get((topic, span.message_queue.queue_id))
            if seen is None:
                continue
            if not seen.records:
                if (span.min_time_stamp, span.max_time_stamp) != (-1, -1) and not seen.end:
                    yield f"an empty queue has the times {span.min_time_stamp} and {span.max_time_stamp}"
                continue
            if span.max_time_stamp > seen.records[-1].store_ms:
                continue
            offset = table.get(str(span.message_queue.queue_id), 0)
            consumed = seen.time_before(offset)
            expected = (seen.records[0].store_ms, seen.records[-1].store_ms, consumed)
            observed = (span.min_time_stamp, span.max_time_stamp, span.consume_time_stamp)
            if observed[:2] != expected[:2] or (consumed is not None and observed[2] != consumed):
                yield f"the times of queue {span.message_queue.queue_id} are {observed}, expected {expected}"


def _changed(before: Seen, after: Seen) -> Iterator[Wrong]:
    for name, rule in (
        ("topics", chapters.TOPICS),
        ("groups", chapters.SUBSCRIPTION_GROUPS),
        ("offsets", chapters.CONSUMER_OFFSETS),
    ):
        was, now = getattr(before, name), getattr(after, name)
        for key in was.keys() | now.keys():
            if was.get(key) != now.get(key):
                yield Wrong(rule, f"{key} of the {name} is {now.get(key)}, and was {was.get(key)}")
    for (topic, queue_id), seen in before.queues.items():
        again = after.queues.get((topic, queue_id))
        if again is None or again.begin < seen.begin or again.end < seen.end:
            where = f"from {again.begin} to {again.end}" if again else "away"
            text = f"queue {queue_id} of {topic} is {where}, and was from {seen.begin} to {seen.end}"
            yield Wrong(chapters.DURABILITY, text)
            continue
        records = {record.queue_offset: record.raw for record in again.records}
        for record in seen.records:
            if record.queue_offset >= again.begin and records.get(record.queue_offset) != record.raw:
                text = f"message {record.queue_offset} of queue {queue_id} of {topic} is another one"
                yield Wrong(chapters.DURABILITY, text)
