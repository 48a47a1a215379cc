"""Requests and replies between Apache's clients and ours, through Apache's broker and through ours."""

from collections.abc import Iterator, Sequence

import pytest

from mqproof.conformance.adapters.apache.java_clients import java_client
from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.conformance.adapters.clients.driver_client import DriverClient
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import NoReplyError, ReceivedMessage
from mqproof.impl.runtime.network import Address

pytestmark = pytest.mark.apache

WAIT_MS = 30_000
FIRST = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


@pytest.fixture
def java_at_apache(
    release: str, apache: tuple[ApacheServer, ApacheServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverClient]:
    with java_client(release, tmp_path_factory.mktemp("java"), apache[0].address) as client:
        yield client


def talk(java: DriverClient, names: Address, release: str) -> None:
    """Let each side request and the other reply, and let a request of each side end without a reply."""
    suffix = release.replace(".", "_")
    to_ours, to_java, silent = f"to_ours_{suffix}", f"to_java_{suffix}", f"silent_{suffix}"
    with BlockingClient(str(names)) as client:

        def answer(messages: Sequence[ReceivedMessage]) -> None:
            for message in messages:
                client.reply(message, b"ours:" + message.body, timeout_ms=WAIT_MS)

        with client.consuming(to_ours, {to_ours: "*"}, answer, FIRST):
            for text in ("one", "two"):
                assert java.request(to_ours, text, WAIT_MS) == f"ours:{text}"
        client.send_or_raise(new_message(to_java, b"first"))  # Java looks for a new topic only every 30 s
        java.answer(to_java, to_java, to_java)
        for body in (b"one", b"x" * 100_000):
            reply = client.request(new_message(to_java, body), timeout_ms=WAIT_MS)
            assert reply.body == b"re:" + body
            assert reply.properties["MSG_TYPE"] == "reply"
        java.close(to_java)
        assert java.request(silent, "nothing", 1000) is None
        with pytest.raises(NoReplyError):
            client.request(new_message(silent, b"nothing"), timeout_ms=1000)


def test_both_sides_request_and_reply_through_our_broker(
    java_at_ours: DriverClient, our_names: Address, release: str
) -> None:
    talk(java_at_ours, our_names, release)


def test_both_sides_request_and_reply_through_apache_s_broker(
    java_at_apache: DriverClient, apache: tuple[ApacheServer, ApacheServer], release: str
) -> None:
    talk(java_at_apache, apache[0].address, release)
