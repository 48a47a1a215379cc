"""The role of a broker whose group elects its master.

See docs/reference/protocol/dledger.md, "Broker of a DLedger group".
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from mqproof.impl.broker.processors import recalls, transaction_ends
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.timers import LOG_READER
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.request_handler import RefusedError

_log = logging.getLogger(__name__)


class ElectedRole:
    """Starts and ends the work of a master according to the elections. `run` it until the broker stops."""

    def __init__(self, store: LedgerStore, services: Services, register: Callable[[], None]) -> None:
        self._store = store
        self._services = services
        self._register = register
        """Schedules a registration with the name servers."""
        self._turned = asyncio.Event()
        self._work: list[asyncio.Task[None]] = []
        """The tasks of a master."""
        store.on_role = self._role_changed

    async def run(self) -> None:
        """Follow the elections until cancelled."""
        try:
            while True:
                if self._store.leads:
                    await self._become_master()
                self._register()
                await self._turned.wait()
                self._turned.clear()
        finally:
            self._end_work()

    async def _become_master(self) -> None:
        services = self._services
        try:
            await services.topics.put_all(self._topics_of_log())
        except (OSError, RefusedError) as error:
            _log.error("topics of the log cannot be created: %s", error)
        if not self._store.leads:
            return
        services.config = services.config.with_role(leads=True)
        services.offsets.lead()
        self._end_work()
        supervisor = services.runtime.supervisor
        self._work = [
            supervisor.run("delivery of delayed messages", services.delays.run(services.address)),
            supervisor.run("checks of transactions", transaction_ends.run(services)),
            supervisor.run("delivery of timers", recalls.run(services)),
        ]
        _log.warning("%s leads its group in term %d", services.config.node, self._store.term)

    def _topics_of_log(self) -> list[TopicConfig]:
        """Return the topics, or the read queues of topics, that exist in the log but not in the topic table.

        The topic table is not in the log. For changes that the last master made shortly before its
        end, the log is the only source.
        """
        table, least = self._services.topics, self._services.config.default_topic_queues
        lacking = []
        for name, count in self._store.topics().items():
            known = table.get(name)
            if known is None:
                # A delayed message may still go to any queue of its topic; the retry and dead-letter topics
                # have one.
                queues = count if name.startswith("%") else max(count, least)
                lacking.append(TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues))
            elif known.read_queue_nums < count:
                lacking.append(replace(known, read_queue_nums=count))
        return lacking

    def _role_changed(self) -> None:
        """Stop being a master at once; `run` does the work of becoming one."""
        if self._store.leads:
            # Until the timers know what they need.
            self._store.keep_log_from(LOG_READER, lambda: self._store.log_begin)
        else:
            self._services.config = self._services.config.with_role(leads=False)
            self._services.offsets.follow()
            self._end_work()
            _log.warning("%s does not lead its group any more", self._services.config.node)
        self._turned.set()

    def _end_work(self) -> None:
        for task in self._work:
            task.cancel()
        self._work = []
