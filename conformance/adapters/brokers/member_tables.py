"""Compares what administrators see of a settled group with its members: connections, offsets, held messages.

See docs/reference/protocol/administration.md, "Clients of a broker" and "Requests that the broker forwards".
"""

from collections.abc import AsyncIterator, Mapping, Set
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumedDirectly,
    ConsumerConnection,
    ConsumerStatus,
    MessageQueue,
    RunningInfo,
)
from mqproof.impl.remoting.codes import RequestCode

_CONSUMED: Final = "CR_SUCCESS"
_RETRY: Final = "%RETRY%"


@dataclass(frozen=True, slots=True)
class SettledGroup:
    """A group whose members have consumed everything."""

    name: str
    topic: str
    owned: Mapping[str, Set[int]]
    """The queues of each client id."""
    offsets: Mapping[int, int]
    """The committed offset of each queue."""
    stored: str
    """The offset message id of a message of the topic; empty if there is none."""


async def wrong_tables(caller: Caller, group: SettledGroup) -> AsyncIterator[Wrong]:
    """Yield what does not agree."""
    header = headers.ConsumerGroupRequest(group.name)
    answer = await caller.request(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
    table = java_json.read(ConsumerConnection, answer.body)
    values: tuple[tuple[str, object, object], ...] = (
        ("client ids", sorted(group.owned), sorted(each.client_id for each in table.connection_set)),
        ("kind and model", ("CONSUME_PASSIVELY", "CLUSTERING"), (table.consume_type, table.message_model)),
        ("start", "CONSUME_FROM_FIRST_OFFSET", table.consume_from_where),
        ("topics", {group.topic, f"{_RETRY}{group.name}"}, set(table.subscription_table)),
    )
    for name, expected, observed in values:
        if expected != observed:
            yield Wrong(chapters.CLIENTS_OF_A_BROKER, f"{name} {observed}, expected {expected}")
    async for wrong in _statuses(caller, group):
        yield wrong
    for client_id in group.owned:
        async for wrong in _of_member(caller, group, client_id):
            yield wrong


async def _statuses(caller: Caller, group: SettledGroup) -> AsyncIterator[Wrong]:
    """Compare the offsets that all members report with the committed ones."""
    header = headers.ConsumerStatusRequest(group.topic, group.name)
    answer = await caller.request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
    found = java_json.read(ConsumerStatus, answer.body).consumer_table
    for client_id, queues in group.owned.items():
        expected = {queue_id: group.offsets[queue_id] for queue_id in queues}
        table = found.get(client_id, {})
        observed = {key.as_a(MessageQueue).queue_id: offset for key, offset in table.items()}
        if observed != expected:
            text = f"{client_id} is at {observed}, expected {expected}"
            yield Wrong(chapters.FORWARDED_REQUESTS, text)


async def _of_member(caller: Caller, group: SettledGroup, client_id: str) -> AsyncIterator[Wrong]:
    header = headers.ConsumerRequest(group.name, client_id)
    answer = await caller.request(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    info = java_json.read(RunningInfo, answer.body)
    queues = {key.as_a(MessageQueue): held for key, held in info.mq_table.items()}
    of_topic = {queue.queue_id: held for queue, held in queues.items() if queue.topic == group.topic}
    topics = {group.topic, f"{_RETRY}{group.name}"}
    expected_offsets = {queue_id: group.offsets[queue_id] for queue_id in group.owned[client_id]}
    values: tuple[tuple[str, object, object], ...] = (
        ("offsets", expected_offsets, {queue_id: held.commit_offset for queue_id, held in of_topic.items()}),
        ("messages held", set(), {queue_id for queue_id, held in of_topic.items() if held.cached_msg_count}),
        ("topics", topics, {each.topic for each in info.subscription_set}),
    )
    for name, expected, observed in values:
        if expected != observed:
            yield Wrong(
                chapters.REQUESTS_TO_CLIENTS, f"{name} of {client_id}: {observed}, expected {expected}"
            )
    if group.stored:
        header = headers.ConsumerRequest(
            group.name, client_id, msg_id=group.stored, broker_name=caller.broker_name
        )
        answer = await caller.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        result = java_json.read(ConsumedDirectly, answer.body).consume_result
        if result != _CONSUMED:
            yield Wrong(chapters.REQUESTS_TO_CLIENTS, f"{client_id} answers {result}, expected {_CONSUMED}")
