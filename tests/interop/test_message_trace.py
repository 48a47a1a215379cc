"""Apache's mqadmin reads the traces of our client from our broker."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache.java_clients import mqadmin
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC
from mqproof.impl.runtime.network import Address

pytestmark = pytest.mark.apache


def test_mqadmin_shows_what_our_client_has_traced(our_names: Address, release: str, tmp_path: Path) -> None:
    name = f"traced_{release.replace('.', '_')}"
    got: list[str] = []

    def listener(messages: Sequence[ReceivedMessage]) -> None:
        got.extend(message.message_id for message in messages)

    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET, trace_topic=TRACE_TOPIC)
    with BlockingClient(str(our_names), producer=ProducerConfig(name, trace_topic=TRACE_TOPIC)) as client:
        sent = client.send_or_raise(new_message(name, b"a", keys="k"))
        with client.consuming(name, {name: "*"}, listener, config):
            deadline_s = time.monotonic() + 60
            while sent.message_id not in got and time.monotonic() < deadline_s:
                time.sleep(0.05)
    printed = mqadmin(release, tmp_path, our_names, "queryMsgTraceById", "-i", sent.message_id)
    words = printed.split()
    assert "Pub" in words, printed
    assert name in words, printed
    assert "success" in words, printed
