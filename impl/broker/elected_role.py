"""The role of a broker whose group elects its master (docs/protocol.md, "A broker in a group")."""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from mqproof.impl.broker.services import Services
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.request_handler import RefusedError

_log = logging.getLogger(__name__)


class ElectedRole:
    """Begins and ends the work of a master, as the elections decide. `run` it until the broker stops."""

    def __init__(self, store: LedgerStore, services: Services, register: Callable[[], None]) -> None:
        self._store = store
        self._services = services
        self._register = register
        """Tells the name servers, soon."""
        self._turned = asyncio.Event()
        self._delivery: asyncio.Task[None] | None = None
        store.on_role = self._role_changed

    async def run(self) -> None:
        """Follow the elections."""
        try:
            while True:
                if self._store.leads:
                    await self._become_master()
                self._register()
                await self._turned.wait()
                self._turned.clear()
        finally:
            self._end_delivery()

    async def _become_master(self) -> None:
        services = self._services
        try:
            await services.topics.put_all(self._topics_of_log())
        except (OSError, RefusedError) as error:
            _log.error("topics of the log cannot be made: %s", error)
        if not self._store.leads:
            return
        services.config = services.config.with_role(leads=True)
        services.offsets.lead()
        self._end_delivery()
        self._delivery = asyncio.create_task(services.delays.run(services.address))
        _log.info("%s leads its group in term %d", services.config.node, self._store.term)

    def _topics_of_log(self) -> list[TopicConfig]:
        """What the topic table lacks that the log has. The table is not in the log: of what the last master
        changed in its last seconds nothing else is known here."""
        table, least = self._services.topics, self._services.config.default_topic_queues
        lacking = []
        for name, count in self._store.topics().items():
            known = table.get(name)
            if known is None:
                # A delayed message may still go to any queue of its topic; a group's own topics have one.
                queues = count if name.startswith("%") else max(count, least)
                lacking.append(TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues))
            elif known.read_queue_nums < count:
                lacking.append(replace(known, read_queue_nums=count))
        return lacking

    def _role_changed(self) -> None:
        """Stop being a master at once; becoming one is left to `run`."""
        if not self._store.leads:
            self._services.config = self._services.config.with_role(leads=False)
            self._services.offsets.follow()
            self._end_delivery()
            _log.info("%s follows in its group", self._services.config.node)
        self._turned.set()

    def _end_delivery(self) -> None:
        if self._delivery is not None:
            self._delivery.cancel()
            self._delivery = None
