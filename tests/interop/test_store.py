"""One store directory, opened by Apache RocketMQ's broker and by ours in turn, after clean ends and kills.

Whoever opens it finds every message where it was, the consumers' offsets, the keys, and goes on behind them.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance.cluster import Cluster, cluster
from conformance.targets.apache import servers
from conformance.targets.apache.servers import ApacheServer
from conformance.targets.apache.wire import ask
from impl.client.blocking import BlockingClient
from impl.client.compose import new_message
from impl.client.model import MessageQueue, Sent
from impl.remoting import headers
from impl.remoting.bodies import SubscriptionGroup, SubscriptionGroups, TopicConfigs
from impl.remoting.codes import RequestCode, ResponseCode
from impl.remoting.command import new_request
from impl.remoting.headers import UNIQUE_KEY_QUERY, QueryMessageRequest, UpdateTopicRequest
from impl.remoting.java_json import quote_keys, read, write
from impl.runtime.network import Address
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
    """Our name server, and on one store directory either broker."""

    ours: Cluster
    apache: ApacheServer
    sent: dict[tuple[int, int], str] = field(default_factory=dict)
    """Message id by queue and offset."""
    committed: dict[int, int] = field(default_factory=dict)
    settings: int = 0
    """How many topics and groups with settings of their own were made."""

    def set(self, broker: Address) -> None:
        """Make a topic and a group that no default is like; both are on disk when this returns."""
        topic = UpdateTopicRequest(f"Set_{self.settings}", "TBW102", 3, 5, 4, "SINGLE_TAG", 0)
        group = SubscriptionGroup(group_name=f"Set_{self.settings}", retry_max_times=3, retry_queue_nums=2)
        _ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, headers.write(topic))
        body = write(group, standard=True)
        _ask(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
        self.settings += 1

    def check_settings(self, broker: Address) -> None:
        """Every topic and group is what it was made by whoever made it."""
        names = [f"Set_{number}" for number in range(self.settings)]
        topics = read(TopicConfigs, _ask(broker, RequestCode.GET_ALL_TOPIC_CONFIG))
        for topic in (topics.topic_config_table[name] for name in names):
            assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (3, 5, 4)
        groups = read(SubscriptionGroups, _ask(broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
        for group in (groups.subscription_group_table[name] for name in names):
            assert (group.retry_max_times, group.retry_queue_nums) == (3, 2)

    def check(self, broker: Address, *, all_keys: bool) -> None:
        """Everything that was ever sent is there, at its place; so are offsets and keys.

        Without `all_keys` only the last message must be found by its key: released brokers throw an index
        away that may be newer than the checkpoint, and index again only what they dispatch again.
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
        """Send, and commit offsets."""
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
        """Until they are on disk: Apache's broker begins with that 10 s after its start."""
        path = self.ours.folder / "store" / "config" / "consumerOffset.json"
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            with suppress(OSError, ValueError, KeyError):  # not there yet, or half of it
                table = json.loads(quote_keys(path.read_text(encoding="utf-8")))["offsetTable"]
                if table[f"{TOPIC}@{GROUP}"] == {str(key): value for key, value in self.committed.items()}:
                    return
            time.sleep(0.2)
        pytest.fail(f"{path} does not have what was committed")


def verified(store: Path) -> int:
    """The exit code of `mqproof store verify`."""
    command = [sys.executable, "-m", "mqproof", "store", "verify", str(store)]
    return subprocess.run(command, timeout=60, check=False).returncode


def _ask(
    broker: Address, code: RequestCode, fields: dict[str, str] | None = None, body: bytes = b""
) -> bytes:
    """The body of the good answer."""
    answer = ask(broker, new_request(code, fields or {}, body), 30.0)
    assert answer is not None, f"no answer to {code.name}"
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer.body


def _is_found_by_key(broker: Address, message_id: str) -> bool:
    header = QueryMessageRequest(TOPIC, message_id, 32, 0, 2**62)
    fields = {**headers.write(header), UNIQUE_KEY_QUERY: "true"}
    answer = ask(broker, new_request(RequestCode.QUERY_MESSAGE, fields), 10.0)
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
def test_a_store_goes_from_hand_to_hand(site: Site, end: str) -> None:
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
        assert verified(site.ours.folder / "store") == 0
    assert len(site.sent) == 600


@pytest.mark.parametrize("first", ["apache", "ours"])
def test_a_delayed_message_is_delivered_by_who_opens_the_store_next(site: Site, first: str) -> None:
    def start(who: str) -> None:
        site.apache.start() if who == "apache" else site.ours.start_broker()

    start(first)
    with BlockingClient(site.ours.name_server) as client:
        outcome = client.send(new_message(TOPIC, b"later", delay_level=3))  # 10 s
        assert isinstance(outcome, Sent), outcome
    site.apache.kill() if first == "apache" else site.ours.kill_broker()
    start("ours" if first == "apache" else "apache")
    gathering = Gathering()
    with (
        BlockingClient(site.ours.name_server) as client,
        client.consuming(GROUP, {TOPIC: "*"}, gathering, FIRST),
    ):
        assert gathering.wait_for(1) == ["later"]
    (message,) = gathering.got
    assert message.message_id == outcome.message_id
    assert message.stored.store_timestamp_ms - message.stored.message.born_timestamp_ms >= 9_900
