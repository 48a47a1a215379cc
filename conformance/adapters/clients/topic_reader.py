"""Reads what a broker has in its topics, beside the client under test."""

from collections import Counter
from contextlib import suppress

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import NoRouteError
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC, Published, decode

_KINDS = {"Published": "Pub", "CallBegan": "SubBefore", "CallEnded": "SubAfter"}


def queue_ends(name_server: str, topic: str) -> int:
    """Return the number of messages that the topic's queues have received, 0 if there is no such topic."""
    with BlockingClient(name_server, instance="reader") as client, suppress(NoRouteError):
        return sum(client.max_offset(queue) for queue in client.queues(topic))
    return 0


def traced(name_server: str) -> dict[str, Counter[str]]:
    """Return the number of trace records of each kind, for each message id in the trace topic."""
    found: dict[str, Counter[str]] = {}
    with BlockingClient(name_server, instance="reader") as client:
        for queue in client.queues(TRACE_TOPIC):
            offset = 0
            while (result := client.pull(queue, offset)).messages:
                offset = result.next_offset
                for message in result.messages:
                    for record in decode(message.message.body):
                        ids = record.message_ids if isinstance(record, Published) else (record.message_id,)
                        for message_id in ids:
                            found.setdefault(message_id, Counter())[_KINDS[type(record).__name__]] += 1
    return found
