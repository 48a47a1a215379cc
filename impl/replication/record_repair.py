"""Repair of damaged records from the other brokers of the same name: they have the same log.

A record is requested by its commit offset, as a message is that a client looks up, so released brokers answer
too. See docs/reference/protocol/storing.md, "Damaged files".
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import ViewMessageRequest
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.entry_repair import LostRecord

_log = logging.getLogger(__name__)

INTERVAL_S: Final = 5.0
_TIMEOUT_S: Final = 3.0
_RECORDS_MAX: Final = 16
"""How many records one round requests. Each one that is repaired costs an fsync."""
_PAUSE_ROUNDS_MAX: Final = 60
"""The most rounds that are left out, after rounds that repaired nothing."""


class DamagedStore(Protocol):
    """The store of a broker, which knows its damaged records."""

    def lost_records(self) -> Sequence[LostRecord]:
        """Return the damaged records that reads found."""
        ...

    def restore_record(self, lost: LostRecord, data: bytes) -> bool:
        """Replace the record if the bytes are right; return whether it is right now."""
        ...


class RecordRepair:
    """Requests the damaged records of a store from its peers, some in each round.

    After a round that repaired nothing, the pause doubles: no peer may have the bytes. A record that is newly
    found damaged ends the pause.
    """

    def __init__(
        self, client: RemotingClient, store: DamagedStore, peers: Callable[[], Awaitable[Sequence[Address]]]
    ) -> None:
        self._client = client
        self._store = store
        self._peers = peers
        self._wait = 0
        """The number of rounds to leave out."""
        self._pause = 0
        self._first = 0
        """The place of the first record of the next round."""
        self._known: frozenset[LostRecord] = frozenset()

    async def round(self) -> None:
        """Request damaged records, unless the last round repaired nothing and it is not time yet."""
        lost = self._store.lost_records()
        if not lost:
            self._wait = self._pause = 0
            return
        if frozenset(lost) <= self._known and self._wait > 0:
            self._wait -= 1
            return
        self._known = frozenset(lost)
        # Records that no peer has must not keep the others waiting: each round begins behind the last one's.
        self._first %= len(lost)
        chosen = [*lost[self._first :], *lost[: self._first]][:_RECORDS_MAX]
        self._first += len(chosen)
        left = chosen
        for peer in await self._peers():
            left = await self._left(peer, left)
        if len(left) < len(chosen):
            self._pause = 0
        else:
            self._pause = min(2 * self._pause + 1, _PAUSE_ROUNDS_MAX)
        self._wait = self._pause

    async def _left(self, peer: Address, lost: Sequence[LostRecord]) -> list[LostRecord]:
        """Request these records from a peer, and return those that are still damaged."""
        left: list[LostRecord] = []
        for number, each in enumerate(lost):
            header = headers.write(ViewMessageRequest(each.commit_offset))
            try:
                answer = await self._client.invoke(
                    peer, new_request(RequestCode.VIEW_MESSAGE_BY_ID, header), _TIMEOUT_S
                )
            except RemotingError as error:
                _log.info("cannot request damaged records from %s: %s", peer, error)
                return [*left, *lost[number:]]
            if answer.code != ResponseCode.SUCCESS or not self._store.restore_record(each, answer.body):
                left.append(each)
        return left
