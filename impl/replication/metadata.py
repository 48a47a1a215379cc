"""What a slave fetches from its master besides the log: topics, groups, consumer offsets and delay offsets.

None of these are in the log. See docs/reference/protocol/replication.md, "Metadata".
"""

import logging
from collections.abc import Mapping
from typing import Final, Protocol, TypeVar

import msgspec

from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import AllGroups, AllTopics
from mqproof.impl.remoting.channel import RemotingError, RequestTimeoutError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import UpdateOffsetRequest
from mqproof.impl.remoting.java_json import BodyError, read
from mqproof.impl.runtime.network import Address

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 3.0

_Body = TypeVar("_Body")


class ConsumerOffsets(msgspec.Struct, rename="camel"):
    """The response body of GET_ALL_CONSUMER_OFFSET."""

    offset_table: dict[str, dict[int, int]] = {}
    """Maps `TOPIC@GROUP` to a map of queue to offset."""


class DelayLevels(msgspec.Struct, rename="camel"):
    """The response body of GET_ALL_DELAY_OFFSET."""

    offset_table: dict[int, int] = {}
    """Maps each delay level to the offset of the next message to deliver."""


class Tables(Protocol):
    """The slave's tables that are kept equal to its master's. The methods raise OSError."""

    def correct_deletions(self, topics: AllTopics) -> None:
        """Correct the deletions of topics before the slave follows the master's log."""
        ...

    async def adopt_topics(self, topics: AllTopics) -> None: ...
    async def adopt_groups(self, groups: AllGroups) -> None: ...
    async def adopt_delays(self, offsets: Mapping[int, int]) -> None: ...
    def merge_offsets(self, table: Mapping[str, Mapping[int, int]]) -> None: ...
    def newer_commits(self, table: Mapping[str, Mapping[int, int]]) -> list[UpdateOffsetRequest]:
        """Return the offsets that consumers committed to this slave and that are newer than the master's."""
        ...

    def mark_sent(self, commit: UpdateOffsetRequest) -> None:
        """Mark the commit as sent to the master."""
        ...


class MetadataSync:
    """Fetches the master's tables.

    `sync` fetches them once. A failure is logged once, and again only after a success or a different failure.
    """

    def __init__(self, client: RemotingClient, tables: Tables) -> None:
        self.master: Address | None = None
        """The address on which the master takes requests; None while it is unknown."""
        self._client = client
        self._tables = tables
        self._complaint = ""

    async def sync(self) -> None:
        """Run one round. The tables received before a failure are kept."""
        if self.master is None:
            return
        try:
            await self._sync(self.master)
        except (RemotingError, BodyError, OSError) as error:
            self._doubt_connection(error)
            complaint = f"topics, groups or offsets of master {self.master} cannot be fetched: {error}"
            if complaint != self._complaint:
                self._complaint = complaint
                _log.warning("%s", complaint)
        else:
            self._complaint = ""

    async def correct_deletions(self) -> None:
        """Fetch the topics that the master deleted.

        Raises OSError if the master is unknown or does not answer.
        """
        if self.master is None:
            raise OSError("its deleted topics are unknown: no name server reports its address for requests")
        try:
            topics = await self._ask(self.master, RequestCode.GET_ALL_TOPIC_CONFIG, AllTopics)
        except (RemotingError, BodyError) as error:
            raise OSError(f"its deleted topics are unknown: {error}") from None
        self._tables.correct_deletions(topics)

    def _doubt_connection(self, error: Exception) -> None:
        """Close a connection on which the master did not answer: it may have forgotten it."""
        channel = self._client.channel(self.master) if self.master else None
        if channel is not None and isinstance(error, RequestTimeoutError):
            channel.abort()

    async def _sync(self, master: Address) -> None:
        ask, tables = self._ask, self._tables
        await tables.adopt_topics(await ask(master, RequestCode.GET_ALL_TOPIC_CONFIG, AllTopics))
        # Groups before offsets: a consumer that connects to this slave finds both.
        code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        await tables.adopt_groups(await ask(master, code, AllGroups))
        offsets = await ask(master, RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsets)
        # The merge comes first because it keeps commits not sent yet. The table does not contain those sent
        # below.
        tables.merge_offsets(offsets.offset_table)
        await self._send_commits(master, offsets.offset_table)
        delays = await ask(master, RequestCode.GET_ALL_DELAY_OFFSET, DelayLevels)
        await tables.adopt_delays(delays.offset_table)

    async def _send_commits(self, master: Address, known: Mapping[str, Mapping[int, int]]) -> None:
        """Send the master the offsets that consumers committed here while it was not available.

        The master restarts from its file, which does not contain these commits. Without them, the group would
        receive the messages again.
        """
        for commit in self._tables.newer_commits(known):
            request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(commit))
            answer = await self._client.invoke(master, request, _TIMEOUT_S)
            if answer.code != ResponseCode.SUCCESS:
                # The master no longer has the topic or group: sending it again would not help.
                _log.warning("offset of group %s: %s", commit.consumer_group, answer.remark)
            self._tables.mark_sent(commit)

    async def _ask(self, master: Address, code: RequestCode, kind: type[_Body]) -> _Body:
        answer = await self._client.invoke(master, new_request(code), _TIMEOUT_S)
        if answer.code != ResponseCode.SUCCESS:
            raise RemotingError(f"{code.name}: {response_name(answer.code)}: {answer.remark}")
        # A released broker whose table is empty sends no body.
        return read(kind, answer.body or b"{}")
