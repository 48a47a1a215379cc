"""Tests one store directory, opened by Apache RocketMQ's broker and by ours in turn, after stops and kills.

Each broker must find every message at its position, the consumers' offsets and the keys, and continue after
them.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.conformance.adapters.apache.single_request import send_request
from mqproof.conformance.hosts.processes import Cluster, cluster
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import MessageQueue, Sent
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup, SubscriptionGroups, TopicConfigs
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import (
    UNIQUE_KEY_QUERY,
    QueryMessageRequest,
    SendRequest,
    UpdateTopicRequest,
)
from mqproof.impl.remoting.java_json import quote_keys, read, write
from mqproof.impl.runtime.network import Address
from tests.interop.test_our_clients import FIRST, Gathering

pytestmark = pytest.mark.apache

TOPIC = "Shared"
GROUP = "SharedGroup"
LOG_SEGMENT_BYTES = 1 << 16
QUEUE_SEGMENT_BYTES = 20 * 50
"""Small, so that both write several."""

PROPERTIES = {
    "mappedFileSizeCommitLog": str(LOG_SEGMENT_BYTES),
    "mappedFileSizeConsumeQueue": str(QUEUE_SEGMENT_BYTES),
    "brokerName": "broker-a",
    "brokerClusterName": "DefaultCluster",
    "flushConsumerOffsetInterval": "1000",
}


@dataclass
class Site:
    """Our name server, and either broker on one store directory."""

    ours: Cluster
    apache: ApacheServer
    sent: dict[tuple[int, int], str] = field(default_factory=dict)
    """Message id by queue and offset."""
    committed: dict[int, int] = field(default_factory=dict)
    settings: int = 0
    """How many topics and groups with settings of their own were made."""

    def set(self, broker: Address) -> None:
        """Create a topic and a group that differ from all defaults. Both are on disk when this returns."""
        topic = UpdateTopicRequest(f"Set_{self.settings}", "TBW102", 3, 5, 4, "SINGLE_TAG", 0)
        group = SubscriptionGroup(group_name=f"Set_{self.settings}", retry_max_times=3, retry_queue_nums=2)
        _ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, headers.write(topic))
        body = write(group, standard=True)
        _ask(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
        self.settings += 1

    def check_settings(self, broker: Address) -> None:
        """Check that every topic and group has the fields that it was created with."""
        names = [f"Set_{number}" for number in range(self.settings)]
        topics = read(TopicConfigs, _ask(broker, RequestCode.GET_ALL_TOPIC_CONFIG))
        for topic in (topics.topic_config_table[name] for name in names):
            assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (3, 5, 4)
        groups = read(SubscriptionGroups, _ask(broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
        for group in (groups.subscription_group_table[name] for name in names):
            assert (group.retry_max_times, group.retry_queue_nums) == (3, 2)

    def check(self, broker: Address, *, all_keys: bool) -> None:
        """Check that every sent message is at its position, and that offsets and keys are there.

        Without `all_keys` only the last message must be found by its key: released brokers discard an index
        that may be newer than the checkpoint, and index again only the records that they dispatch again.
        """
        self.check_settings(broker)
        with BlockingClient(self.ours.name_server, consumer_group=GROUP) as client:
            found: dict[tuple[int, int], str] = {}
            for queue in client.queues(TOPIC) if self.sent else ():
                offset = 0
                while (result := client.pull(queue, offset)).messages:
                    found.update(((queue.queue_id, m.queue_offset), m.message_id) for m in result.messages)
                    offset = result.next_offset
                assert client.committed(queue) == self.committed[queue.queue_id]
            assert found == self.sent
        ids = [*self.sent.values()]
        for message_id in ids[:: max(1, len(ids) // 7)] if all_keys else ids[-1:]:
            assert _is_found_by_key(broker, message_id), message_id

    def write(self, count: int) -> None:
        """Send messages and commit offsets."""
        with BlockingClient(self.ours.name_server, consumer_group=GROUP) as client:
            for _ in range(count):
                outcome = client.send(new_message(TOPIC, b"x" * 500, tag="TagA", keys=["a", "b"]))
                assert isinstance(outcome, Sent), outcome
                self.sent[outcome.queue.queue_id, outcome.queue_offset] = outcome.message_id
            for queue_id in range(4):
                self.committed[queue_id] = sum(1 for queue, _ in self.sent if queue == queue_id) // 2
                client.commit(MessageQueue(TOPIC, "broker-a", queue_id), self.committed[queue_id])
        self._wait_for_offsets()

    def _wait_for_offsets(self) -> None:
        """Wait until they are on disk: Apache's broker first writes them 10 s after its start."""
        path = self.ours.folder / "store" / "config" / "consumerOffset.json"
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            with suppress(OSError, ValueError, KeyError):  # not there yet, or incomplete
                table = json.loads(quote_keys(path.read_text(encoding="utf-8")))["offsetTable"]
                if table[f"{TOPIC}@{GROUP}"] == {str(key): value for key, value in self.committed.items()}:
                    return
            time.sleep(0.2)
        pytest.fail(f"{path} does not have what was committed")


def damages(store: Path) -> list[str]:
    """Return the output of `mqproof store verify`."""
    command = [sys.executable, "-m", "mqproof", "store", "verify", str(store)]
    done = subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)
    *lines, verdict = done.stdout.splitlines()
    assert verdict.startswith("whole") == (done.returncode == 0), done.stdout + done.stderr
    return [line for line in lines if not line.startswith("note: ")]


def _ask(
    broker: Address, code: RequestCode, fields: dict[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Return the body of a successful answer."""
    answer = send_request(broker, new_request(code, fields or {}, body), 30.0)
    assert answer is not None, f"no answer to {code.name}"
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer.body


def _is_found_by_key(broker: Address, message_id: str) -> bool:
    header = QueryMessageRequest(TOPIC, message_id, 32, 0, 2**62)
    fields = {**headers.write(header), UNIQUE_KEY_QUERY: "true"}
    answer = send_request(broker, new_request(RequestCode.QUERY_MESSAGE, fields), 10.0)
    return answer is not None and answer.code == ResponseCode.SUCCESS and message_id.encode() in answer.body


@pytest.fixture
def site(release: str, tmp_path: Path) -> Iterator[Site]:
    with cluster(tmp_path, "ASYNC_FLUSH") as ours:
        configuration = tmp_path / "broker.properties"
        configuration.write_text("".join(f"{key}={value}\n" for key, value in PROPERTIES.items()))
        ours.broker_options = ("--config", str(configuration))
        ours.start_name_server()
        names = Address.parse(ours.name_server)
        properties = {**PROPERTIES, "storePathRootDir": str(tmp_path / "store")}
        apache = servers.broker(release, tmp_path, names, properties=properties)
        try:
            yield Site(ours, apache)
        finally:
            apache.kill()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_both_brokers_can_open_the_same_store_in_turn(site: Site, end: str) -> None:
    for turn in range(4):
        if turn % 2 == 0:
            site.apache.start()
            site.check(site.apache.address, all_keys=end == "stop")
            site.set(site.apache.address)
            site.write(150)
            site.apache.stop() if end == "stop" else site.apache.kill()
        else:
            site.ours.start_broker()
            address = Address("127.0.0.1", site.ours.broker_port)
            site.check(address, all_keys=end == "stop")
            site.set(address)
            site.write(150)
            site.ours.stop("broker") if end == "stop" else site.ours.kill_broker()
        found = damages(site.ours.folder / "store")
        # The effect of a released broker on an index after a kill: see `check`.
        assert not [line for line in found if end == "stop" or not line.startswith("index: keys of ")]
    assert len(site.sent) == 600


def start(site: Site, owner: str) -> Address:
    site.apache.start() if owner == "apache" else site.ours.start_broker()
    return site.apache.address if owner == "apache" else Address("127.0.0.1", site.ours.broker_port)


def put(broker: Address, body: bytes) -> str:
    """Send to queue 0 of topic Again. Returns the queue offset."""
    header = SendRequest("PG", "Again", "TBW102", 4, 0, 0, 0, 0)
    answer = send_request(broker, new_request(RequestCode.SEND_MESSAGE, headers.write(header), body), 30.0)
    assert answer is not None
    return answer.fields["queueOffset"]


# Not ours first with a kill: a released broker dispatches the old records again, but not the new ones.
@pytest.mark.parametrize(("first", "end"), [("apache", "stop"), ("apache", "kill"), ("ours", "stop")])
def test_a_recreated_topic_has_only_its_own_messages(site: Site, first: str, end: str) -> None:
    broker = start(site, first)
    topic = headers.write(UpdateTopicRequest("Again", "TBW102", 1, 1, 6, "SINGLE_TAG", 0))
    for life in ("old", "new"):
        _ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, topic)
        assert [put(broker, f"{life} {number}".encode()) for number in range(3)] == ["0", "1", "2"]
        wait_until(lambda: max_offset(broker) == "3")
        if life == "old":
            _ask(broker, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Again"})
    if first == "apache":
        site.apache.stop() if end == "stop" else site.apache.kill()
    else:
        site.ours.stop("broker")
    assert damages(site.ours.folder / "store") == []
    broker = start(site, "ours" if first == "apache" else "apache")
    with BlockingClient(site.ours.name_server, consumer_group=GROUP) as client:
        found = client.pull(MessageQueue("Again", "broker-a", 0), 0).messages
    assert [each.message.body for each in found] == [b"new 0", b"new 1", b"new 2"]
    assert put(broker, b"more") == "3"


def max_offset(broker: Address) -> str:
    request = new_request(RequestCode.GET_MAX_OFFSET, {"topic": "Again", "queueId": "0"})
    answer = send_request(broker, request, 30.0)
    return answer.fields["offset"] if answer else ""


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("first", ["apache", "ours"])
def test_a_delayed_message_is_delivered_by_the_broker_that_opens_the_store_next(
    site: Site, first: str
) -> None:
    start(site, first)
    with BlockingClient(site.ours.name_server) as client:
        outcome = client.send(new_message(TOPIC, b"later", delay_level=3))  # 10 s
        assert isinstance(outcome, Sent), outcome
    site.apache.kill() if first == "apache" else site.ours.kill_broker()
    start(site, "ours" if first == "apache" else "apache")
    gathering = Gathering()
    with (
        BlockingClient(site.ours.name_server) as client,
        client.consuming(GROUP, {TOPIC: "*"}, gathering, FIRST),
    ):
        assert gathering.wait_for(1) == ["later"]
    (message,) = gathering.got
    assert message.message_id == outcome.message_id
    assert message.stored.store_timestamp_ms - message.stored.message.born_timestamp_ms >= 9_900
