"""The broker's topics: those that exist, those that can be created, and topics.json.

A topic is on disk before the first message in it is acknowledged. Otherwise no consumer could read that
message after a crash. See docs/reference/protocol/sending.md, "Topics".
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from mqproof.impl.broker.state.durable_table import DurableTable, read_config
from mqproof.impl.remoting.bodies import PERM_INHERIT, PERM_READ_WRITE, TopicConfig, TopicConfigs
from mqproof.impl.remoting.budget import NameBudget, Peer, Percentages, shares_of
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import RETRY_PREFIX
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.topic_names import reply_topic
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.damage import DamageReport
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.sealed_file import is_sealed

_log = logging.getLogger(__name__)

_NAMES_SHOWN: Final = 100

DEFAULT_TOPIC: Final = "TBW102"
"""The template of topics that are created by a send."""

DEAD_LETTER_PREFIX: Final = "%DLQ%"

SYSTEM_TOPICS: Final = frozenset(
    {
        DEFAULT_TOPIC,
        "SCHEDULE_TOPIC_XXXX",
        "BenchmarkTest",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
"""Topics that no administrator creates, changes or deletes, together with those of `system_topics`."""

_SYSTEM_PREFIX: Final = "rmq_sys_"


def system_topics(broker: str, cluster: str) -> list[str]:
    """Return the system topics of a broker."""
    return sorted({*SYSTEM_TOPICS, broker, cluster, reply_topic(cluster)})


def is_system_topic(topic: str, broker: str, cluster: str) -> bool:
    own = (broker, cluster, reply_topic(cluster))
    return topic in SYSTEM_TOPICS or topic in own or topic.startswith(_SYSTEM_PREFIX)


def built_in(
    *, broker: str, cluster: str, auto_create: bool, default_queues: int, trace: bool = False
) -> list[TopicConfig]:
    """Return the topics that every broker has from its first start."""
    inherit = PERM_READ_WRITE | PERM_INHERIT
    topics = [
        _topic("SELF_TEST_TOPIC", 1),
        _topic(cluster, 16, inherit),
        _topic(broker, 1, inherit),
        _topic("OFFSET_MOVED_EVENT", 1),
        _topic("SCHEDULE_TOPIC_XXXX", 18),
        _topic("BenchmarkTest", 1024),
        _topic(reply_topic(cluster), 1),
    ]
    if trace:
        topics.append(_topic("RMQ_SYS_TRACE_TOPIC", 1))
    if auto_create:
        topics.append(_topic(DEFAULT_TOPIC, default_queues, inherit))
    return topics


class TopicTable:
    """All topics, in memory and in topics.json. `on_change` is called after the file was written."""

    def __init__(
        self,
        path: str,
        runtime: Runtime,
        *,
        topics_max: int,
        queues_max: int,
        percent: Percentages | None = None,
    ) -> None:
        self._path = path
        self._disk = runtime.disk
        self._topics_max = topics_max
        self.budget = NameBudget("topics", shares_of(topics_max, percent or Percentages()))
        self._queues_max = queues_max
        self._table: DurableTable[TopicConfig] = DurableTable(path, runtime, TopicConfigs)
        self.on_change: Callable[[], None] = lambda: None

    def load(
        self,
        defaults: list[TopicConfig],
        damage: DamageReport | None = None,
        with_queues: Mapping[str, int] | None = None,
    ) -> bool:
        """Read topics.json, if it exists, and add the default topics that it lacks.

        If neither it nor its backup can be used, the topics that have queues are rebuilt. `with_queues` maps
        these topics to the number of their queues.

        Returns whether mqproof wrote the file, and so the other tables too.

        Raises:
            StoreError: the file is not a topic table. OSError: it cannot be read or written.
        """
        is_ours = is_sealed(self._disk, self._path)
        try:
            stored = read_config(self._disk, self._path, TopicConfigs, damage)
            problem = "it is missing, and so is its backup"
        except StoreError as error:
            if not with_queues:
                raise
            stored, problem = None, str(error)
        if stored is not None:
            self._table.load(stored.data_version, stored.topic_config_table)
        elif with_queues:
            self._rebuild(with_queues, problem)
        self._table.add_now({topic.topic_name: topic for topic in defaults if not self.get(topic.topic_name)})
        self._table.persist_now()
        return is_ours

    def _rebuild(self, with_queues: Mapping[str, int], problem: str) -> None:
        """Create the topics that have queues, with the default permissions."""
        _log.error(
            "%s: %s: %d topics are rebuilt from the folders of the queues, with default permissions: %s",
            self._path,
            problem,
            len(with_queues),
            " ".join(sorted(with_queues)[:_NAMES_SHOWN]),
        )
        self._table.add_now({name: _topic(name, queues) for name, queues in with_queues.items()})

    def __len__(self) -> int:
        return len(self._table)

    def get(self, topic: str) -> TopicConfig | None:
        return self._table.get(topic)

    def snapshot(self) -> TopicConfigs:
        """Return all topics, as stored in topics.json."""
        return TopicConfigs(self._table.version, self._table.values())

    def registered(self, permission: int) -> TopicConfigs:
        """Return the topics registered with name servers, limited to the permissions of the whole broker."""
        configs = self.snapshot()
        table = {
            name: msgspec.structs.replace(topic, perm=topic.perm & (permission | PERM_INHERIT))
            for name, topic in configs.topic_config_table.items()
        }
        return TopicConfigs(configs.data_version, table)

    def registered_otherwise(self) -> None:
        """Renew the version after the registered topics changed: name servers ignore a known version."""
        self._table.renew_version()
        self.on_change()

    async def create_for_send(
        self, topic: str, template_name: str, queues: int, by: Peer | None = None
    ) -> TopicConfig | None:
        """Return the topic; create it like its template if the template allows that, otherwise return None.

        A new topic counts for the peer `by`.

        Raises:
            RefusedError: there are too many topics already, in all or of the peer.
            OSError: topics.json cannot be written. The topic does not exist then.
        """
        if topic.startswith(RETRY_PREFIX):
            return await self.ensure(topic, 1, by=by)
        template = self.get(template_name)
        if template is None or not template.perm & PERM_INHERIT:
            return None
        queues = max(1, min(queues, template.write_queue_nums, self._queues_max))
        return await self.ensure(topic, queues, template.perm & ~PERM_INHERIT, by=by)

    async def ensure(
        self, topic: str, queues: int, perm: int = PERM_READ_WRITE, by: Peer | None = None
    ) -> TopicConfig:
        """Return the existing topic, or create it with these settings. Raises as `create_for_send`."""
        existing = self.get(topic)
        if existing is None:
            await self.put_all([_topic(topic, queues, perm)], by)
            existing = self.get(topic)
            assert existing is not None
        return existing

    async def ensure_all(self, topics: Mapping[str, int], by: Peer | None = None) -> None:
        """Create the topics that do not exist, with the given numbers of queues, in one write.

        Raises as `ensure`.
        """
        missing = {name: queues for name, queues in topics.items() if self.get(name) is None}
        await self.put_all((_topic(name, queues) for name, queues in missing.items()), by)

    async def put(self, topic: TopicConfig) -> None:
        """Create or replace a topic. Raises as `create_for_send`."""
        await self.put_all([topic])

    async def put_all(self, topics: Iterable[TopicConfig], by: Peer | None = None) -> None:
        """Create or replace topics, in one write. Raises as `create_for_send`."""
        changed = {topic.topic_name: topic for topic in topics}
        if changed:
            new = [name for name in changed if self.get(name) is None]
            self._require_room(len(new), by)
            if by is not None:  # at once: further requests may come before these topics are on disk
                self.budget.created(by, new)
            try:
                await self._table.change(changed)
            except OSError:
                self.budget.deleted(new)
                raise
            self.on_change()

    async def adopt(self, topics: TopicConfigs) -> None:
        """Replace the table by a master's, unless it has the same version.

        Raises OSError when the file cannot be written; nothing has changed then.
        """
        if topics.data_version != self._table.version:
            await self._table.replace(topics.data_version, topics.topic_config_table)
            self.on_change()

    async def delete(self, topics: Iterable[str]) -> None:
        """Delete those of the topics that exist.

        Raises OSError when topics.json cannot be written; none is deleted then.
        """
        known: dict[str, TopicConfig | None] = {name: None for name in topics if self.get(name) is not None}
        if known:
            await self._table.change(known)
            self.budget.deleted(known)
            self.on_change()

    def _require_room(self, count: int, by: Peer | None) -> None:
        if count and len(self._table) + count > self._topics_max:
            raise RefusedError(
                ResponseCode.SYSTEM_BUSY, f"there are {len(self._table)} topics, which is the limit"
            )
        if count and by is not None and (reason := self.budget.refusal(by, count)) is not None:
            raise RefusedError(ResponseCode.SYSTEM_BUSY, reason)


def _topic(name: str, queues: int, perm: int = PERM_READ_WRITE) -> TopicConfig:
    return TopicConfig(topic_name=name, perm=perm, read_queue_nums=queues, write_queue_nums=queues)
