"""The broker's topics: what exists, what may be created, and topics.json.

A topic is on disk before the first message in it is acknowledged: without it, nobody could read that message
after a crash. See docs/protocol.md, "Topics".
"""

import asyncio
import re
from collections.abc import Callable
from typing import Final

from impl.remoting.bodies import PERM_INHERIT, PERM_READ_WRITE, DataVersion, TopicConfig, TopicConfigs
from impl.remoting.java_json import BodyError, read, write
from impl.runtime.clock import now_ms
from impl.runtime.disk import read_whole, write_durably
from impl.runtime.runtime import Runtime
from impl.store.errors import StoreError

DEFAULT_TOPIC: Final = "TBW102"
"""The template of topics that are created by a send."""

RETRY_PREFIX: Final = "%RETRY%"
NAME_CHARACTERS_MAX: Final = 127

NOT_FOR_CLIENTS: Final = frozenset(
    {
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
"""Topics to which no client may send."""

_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")


def name_problem(topic: str) -> str | None:
    """Why this cannot be a topic's name; None if it can."""
    if not topic:
        return "the topic is empty"
    if len(topic) > NAME_CHARACTERS_MAX:
        return f"the topic has {len(topic)} characters, at most {NAME_CHARACTERS_MAX} are allowed"
    if not _NAME.fullmatch(topic):
        return f"the topic {topic!r} has a character other than % | a-z A-Z 0-9 _ -"
    return None


def built_in(*, broker: str, cluster: str, auto_create: bool, default_queues: int) -> list[TopicConfig]:
    """The topics that every broker has from its first start."""
    inherit = PERM_READ_WRITE | PERM_INHERIT
    topics = [
        _topic("SELF_TEST_TOPIC", 1),
        _topic(cluster, 16, inherit),
        _topic(broker, 1, inherit),
        _topic("OFFSET_MOVED_EVENT", 1),
        _topic("SCHEDULE_TOPIC_XXXX", 18),
    ]
    if auto_create:
        topics.append(_topic(DEFAULT_TOPIC, default_queues, inherit))
    return topics


class TopicTable:
    """All topics, in memory and in topics.json. `on_change` is called after the file was written."""

    def __init__(self, path: str, runtime: Runtime, *, auto_create: bool, queues_max: int) -> None:
        self._path = path
        self._runtime = runtime
        self._auto_create = auto_create
        self._queues_max = queues_max
        self._topics: dict[str, TopicConfig] = {}
        self._version = DataVersion(0, now_ms(runtime.clock))
        self._changing = asyncio.Lock()
        self.on_change: Callable[[], None] = lambda: None

    def load(self, defaults: list[TopicConfig]) -> None:
        """Read topics.json, if there is one, and add the defaults that it lacks.

        Raises:
            StoreError: the file is not a topic table. OSError: it cannot be read or written.
        """
        disk = self._runtime.disk
        if disk.exists(self._path):
            try:
                stored = read(TopicConfigs, read_whole(disk, self._path))
            except BodyError as error:
                raise StoreError(f"{self._path}: {error}") from None
            self._topics = dict(stored.topic_config_table)
            self._version = stored.data_version
        missing = [topic for topic in defaults if topic.topic_name not in self._topics]
        if missing:
            self._topics.update((topic.topic_name, topic) for topic in missing)
            self._bump()
            write_durably(disk, self._path, write(self.snapshot(), standard=True))

    def get(self, topic: str) -> TopicConfig | None:
        return self._topics.get(topic)

    def snapshot(self) -> TopicConfigs:
        """Everything, as it is registered with the name servers and kept in topics.json."""
        return TopicConfigs(self._version, dict(self._topics))

    async def create_for_send(self, topic: str, template_name: str, queues: int) -> TopicConfig | None:
        """The topic, made like its template if the template passes itself on; None when none can be made.

        Raises:
            OSError: topics.json cannot be written; the topic does not exist then.
        """
        if topic.startswith(RETRY_PREFIX):
            return await self._add(_topic(topic, 1))
        template = self._topics.get(template_name)
        if template is None or not template.perm & PERM_INHERIT:
            return None
        if template_name == DEFAULT_TOPIC and not self._auto_create:
            return None
        queues = max(1, min(queues, template.write_queue_nums, self._queues_max))
        return await self._add(_topic(topic, queues, template.perm & ~PERM_INHERIT))

    async def create_retry_topic(self, group: str) -> None:
        """The topic of the group's redeliveries. OSError when topics.json cannot be written."""
        if RETRY_PREFIX + group not in self._topics:
            await self._add(_topic(RETRY_PREFIX + group, 1))

    async def _add(self, topic: TopicConfig) -> TopicConfig:
        async with self._changing:
            existing = self._topics.get(topic.topic_name)
            if existing is not None:
                return existing
            version = self._version
            future = {**self._topics, topic.topic_name: topic}
            self._bump()
            data = write(TopicConfigs(self._version, future), standard=True)
            try:
                await self._runtime.offload(lambda: write_durably(self._runtime.disk, self._path, data))
            except OSError:
                self._version = version
                raise
            self._topics = future
        self.on_change()
        return topic

    def _bump(self) -> None:
        self._version = DataVersion(self._version.counter + 1, now_ms(self._runtime.clock))


def _topic(name: str, queues: int, perm: int = PERM_READ_WRITE) -> TopicConfig:
    return TopicConfig(topic_name=name, perm=perm, read_queue_nums=queues, write_queue_nums=queues)
