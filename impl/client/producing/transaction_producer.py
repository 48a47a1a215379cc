"""Sends half messages, runs local transactions, and answers the checks of brokers.

See docs/reference/protocol/transactions.md.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol, cast

from msgspec.structs import replace as changed

from mqproof.impl.client.arguments import require_function
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.messages.compose import is_delayed
from mqproof.impl.client.model import MessageError, MessageQueue, Outcome, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import CheckTransactionRequest, EndTransactionRequest
from mqproof.impl.remoting.message import (
    SYS_TRANSACTION_COMMIT,
    SYS_TRANSACTION_PREPARED,
    SYS_TRANSACTION_ROLLBACK,
    UNIQUE_KEY,
    Message,
    StoredMessage,
    parse_offset_message_id,
)
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address

_log = logging.getLogger(__name__)

_CHECKS_MAX: Final = 64
"""The most checks that are answered at once. A broker asks again for those that are left out."""


class TransactionState(Enum):
    """The end of a local transaction."""

    COMMIT = SYS_TRANSACTION_COMMIT
    ROLLBACK = SYS_TRANSACTION_ROLLBACK
    UNKNOWN = 0
    """It has not ended, or its end is not known here: the broker will ask again."""


class LocalTransaction(Protocol):
    """Runs the local transaction of a message. A plain function runs in a thread.

    `transaction_id` identifies the message; store it together with the result, so that a check finds it. If
    the function raises, its end is unknown, and the broker asks the check listener.
    """

    def __call__(
        self, message: Message, transaction_id: str, /
    ) -> "TransactionState | Awaitable[TransactionState]": ...


class CheckListener(Protocol):
    """Returns the end of an earlier transaction. A plain function runs in a thread.

    It is called on any producer of the group, also after a restart, and must find the end in a durable place.
    A transaction that is known never to have run, or never to run any more, is a ROLLBACK.
    """

    def __call__(
        self, message: StoredMessage, transaction_id: str, /
    ) -> "TransactionState | Awaitable[TransactionState]": ...


@dataclass(frozen=True, slots=True)
class TransactionOutcome:
    """The outcome of a transactional send."""

    sent: Outcome
    """The outcome of the half message."""
    state: TransactionState
    """What was reported to the broker. ROLLBACK if the local transaction did not run."""
    error: Exception | None = None
    """What the local transaction raised; the state is then UNKNOWN."""


class TransactionProducer:
    """A producer of transactional messages: a message is visible if and only if its transaction committed.

    Brokers ask `check` for the ends that they did not receive. `stop` it before its session.
    """

    def __init__(
        self,
        session: Session,
        check: CheckListener,
        config: ProducerConfig | None = None,
        events: EventLog | None = None,
    ) -> None:
        require_function("check", check)
        self._session = session
        self._config = config or ProducerConfig()
        # An attempt with an unknown result is not repeated: its half message may exist, and its check would
        # report the end of the one that was sent again.
        config = replace(self._config, retry_unknown=False, retry_unconfirmed=False)
        self._producer = Producer(session, config, events)
        self._check = check
        self._answering: set[asyncio.Task[None]] = set()
        session.join_as_producer(self._config.group, self._checked)

    async def send(
        self,
        message: Message,
        local: LocalTransaction,
        queue: MessageQueue | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> TransactionOutcome:
        """Send a half message, run the local transaction if it is stored safely, and report the end.

        The local transaction runs only after SEND_OK. A half message that is certainly not stored is sent
        again, to another broker if there is one.

        Raises:
            MessageError: as Producer.send, or the message has a delay.
        """
        require_function("local", local)
        if is_delayed(message):
            raise MessageError("a transactional message cannot be delayed")
        half = self._half(message)
        sent = await self._producer.send(half, queue, timeout_ms=timeout_ms)
        if not isinstance(sent, Sent):
            return TransactionOutcome(sent, TransactionState.ROLLBACK)
        await self._session.greet()  # the broker must know whom to ask
        state, error = TransactionState.ROLLBACK, None
        if sent.status == "SEND_OK":
            state, error = await self._run(local, half, sent.message_id)
        await self._end(sent, state, error)
        return TransactionOutcome(sent, state, error)

    async def stop(self) -> None:
        """Stop answering checks; the broker asks another producer of the group."""
        self._session.leave_checks(self._config.group, self._checked)
        for task in list(self._answering):
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    def _half(self, message: Message) -> Message:
        properties = {name: value for name, value in message.properties.items() if name != UNIQUE_KEY}
        properties |= {"TRAN_MSG": "true", "PGROUP": self._config.group}
        return changed(message, properties=properties, sys_flag=message.sys_flag | SYS_TRANSACTION_PREPARED)

    async def _run(
        self, local: LocalTransaction, message: Message, transaction_id: str
    ) -> tuple[TransactionState, Exception | None]:
        try:
            return await self._called(local, message, transaction_id), None
        except Exception as error:  # an error of the application; its transaction may have committed
            _log.error("the local transaction of %s failed", transaction_id, exc_info=error)
            return TransactionState.UNKNOWN, error

    async def _called(
        self,
        function: LocalTransaction | CheckListener,
        message: Message | StoredMessage,
        transaction_id: str,
    ) -> TransactionState:
        if _is_async(function):
            state = await cast(Awaitable[TransactionState], function(message, transaction_id))  # type: ignore[arg-type]
        else:
            state = await self._session.runtime.offload(lambda: function(message, transaction_id))  # type: ignore[arg-type,return-value]
        if not isinstance(state, TransactionState):
            raise TypeError(f"the function returned {state!r}, a TransactionState expected")
        return state

    async def _end(self, sent: Sent, state: TransactionState, error: Exception | None) -> None:
        address = self._session.routes.address(sent.queue.topic, sent.queue.broker_name)
        try:
            _, commit_offset = parse_offset_message_id(sent.offset_message_id)
        except ValueError as bad:
            _log.error("the broker's id of half message %s is invalid: %s", sent.message_id, bad)
            return
        if address is None:
            return  # the broker asks
        header = EndTransactionRequest(
            producer_group=self._config.group,
            tran_state_table_offset=sent.queue_offset,
            commit_log_offset=commit_offset,
            commit_or_rollback=state.value,
            from_transaction_check=False,
            msg_id=sent.message_id,
            transaction_id=sent.message_id,
            topic=sent.queue.topic,
        )
        await self._report(address, header, error)

    async def _report(self, address: Address, header: EndTransactionRequest, error: Exception | None) -> None:
        request = new_request(RequestCode.END_TRANSACTION, headers.write(header), oneway=True)
        if error is not None:
            request = changed(request, remark=f"{type(error).__name__}: {error}"[:1000])
        try:
            await self._session.remoting.send_oneway(address, request)
        except RemotingError as lost:
            _log.info("the end of %s is not reported, the broker will ask: %s", header.msg_id, lost)

    def _checked(self, address: Address, header: CheckTransactionRequest, message: StoredMessage) -> None:
        """Answer a broker's check, in the background."""
        if len(self._answering) >= _CHECKS_MAX:
            return
        task = asyncio.create_task(self._answer(address, header, message))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(
        self, address: Address, header: CheckTransactionRequest, message: StoredMessage
    ) -> None:
        error, state = None, TransactionState.UNKNOWN
        transaction_id = message.message.properties.get(UNIQUE_KEY) or header.msg_id or ""
        try:
            state = await self._called(self._check, message, transaction_id)
        except Exception as raised:  # an error of the application: the end stays unknown
            _log.error("the check of transaction %s failed", transaction_id, exc_info=raised)
            error = raised
        answer = EndTransactionRequest(
            producer_group=self._config.group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=state.value,
            from_transaction_check=True,
            msg_id=transaction_id,
            transaction_id=header.transaction_id,
            topic=message.message.topic,
        )
        await self._report(address, answer, error)


def _is_async(function: object) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  # inspected, not called
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
