"""Our client as a program of `driver_client.py`, which describes its commands.

python -m mqproof.conformance.adapters.clients.client_program NAMESRV [trace]
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Final
from urllib.parse import unquote

from mqproof.impl.client.blocking import BlockingClient, BlockingPoller, BlockingTransactions
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import (
    NoReplyError,
    Outcome,
    ReceivedMessage,
    RefusalError,
    RetryLater,
    SendError,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.producing.queue_choice import by_hash
from mqproof.impl.client.producing.transaction_producer import TransactionState
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC
from mqproof.impl.remoting.message import Message, StoredMessage

_SEND_TIMEOUT_MS: Final = 20_000
_OFTEN_MS: Final = 1000
_printing = threading.Lock()


def _emit(event: str, **members: str | int | None) -> None:
    with _printing:
        # Like the other programs: the kind of event is at the start of the line.
        sys.stdout.write(json.dumps({"event": event, **members}, separators=(",", ":")) + "\n")
        sys.stdout.flush()


class _Program:
    """Performs the commands with a client for sends, and a client for each consumer."""

    def __init__(self, name_server: str, traces: bool) -> None:
        self._name_server = name_server
        self._trace_topic = TRACE_TOPIC if traces else None
        self._ending = ExitStack()
        self._consumers: dict[str, ExitStack] = {}
        self._failed: set[tuple[str, str]] = set()
        config = ProducerConfig(
            "driver_producer", send_timeout_ms=_SEND_TIMEOUT_MS, trace_topic=self._trace_topic
        )
        self._client = self._ending.enter_context(BlockingClient(name_server, producer=config))
        self._transactions: BlockingTransactions | None = None

    def end(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        self._ending.close()

    # Sending.

    def put(self, mode: str, topic: str, body: str, tag: str, properties: str) -> None:
        kind, _, value = mode.partition("-")
        pairs = dict(pair.split("=") for pair in properties.split("&") if pair)
        message = new_message(
            topic,
            body.encode(),
            tag=tag or None,
            keys=body,
            delay_level=int(value) if kind == "level" else 0,
            delay=float(value) / {"sec": 1, "ms": 1000}[kind] if kind in ("sec", "ms") else None,
            deliver_at=int(value) / 1000 if kind == "at" else None,
            properties=pairs,
        )
        match kind:
            case "oneway":
                self._client.send_oneway(message)
            case "async":
                _sent(self._client.send_later(message).result())
            case "key":
                _sent(self._client.send(message, select=by_hash(value)))
            case _:
                _sent(self._client.send(message))

    def batch(self, topic: str, prefix: str, count: str) -> None:
        messages = [
            new_message(topic, f"{prefix}{n}".encode(), keys=f"{prefix}{n}") for n in range(int(count))
        ]
        outcomes = self._client.send_batch(messages)
        failed = [outcome for outcome in outcomes if not isinstance(outcome, Sent)]
        _sent(failed[0] if failed else outcomes[0])

    def burst(self, topic: str, prefix: str, count: str, gap_ms: str) -> None:
        def send_all() -> None:
            for number in range(int(count)):
                body = f"{prefix}{number}"
                outcome = self._client.send(new_message(topic, body.encode(), keys=body))
                _emit("burst", body=body, status=_status(outcome))
                time.sleep(int(gap_ms) / 1000)
            _emit("burst-end")

        threading.Thread(target=send_all, daemon=True).start()

    def recall(self, topic: str, handle: str) -> None:
        try:
            self._client.recall(topic, handle)
            _emit("recalled")
        except RefusalError as error:
            _emit("not-recalled", message=str(error))

    def request(self, topic: str, body: str, timeout_ms: str) -> None:
        message = new_message(topic, body.encode())
        try:
            reply = self._client.request(message, timeout_ms=int(timeout_ms))
            _emit("reply", body=reply.body.decode())
        except (NoReplyError, SendError) as error:
            _emit("no-reply", message=str(error))

    # Transactions: the tag of a message says what its local transaction and its checks return.

    def transactions(self, group: str) -> None:
        config = ProducerConfig(group, send_timeout_ms=_SEND_TIMEOUT_MS)

        def check(message: StoredMessage, _transaction_id: str, /) -> TransactionState:
            _emit("checked", body=message.message.body.decode())
            is_commit = message.message.properties.get("TAGS", "").endswith("commit")
            return TransactionState.COMMIT if is_commit else TransactionState.ROLLBACK

        self._transactions = self._ending.enter_context(self._client.transactions(check, config))

    def transact(self, topic: str, body: str, tag: str) -> None:
        assert self._transactions is not None, "transactions expected first"
        transactions = self._transactions
        message = new_message(topic, body.encode(), tag=tag, keys=body)

        def execute(_message: Message, _transaction_id: str, /) -> TransactionState:
            _emit("executed", body=body)
            if tag.startswith("hang"):
                threading.Event().wait()
            ends = {"commit": TransactionState.COMMIT, "rollback": TransactionState.ROLLBACK}
            return ends.get(tag, TransactionState.UNKNOWN)

        if tag.startswith("hang"):
            threading.Thread(target=transactions.send, args=(message, execute), daemon=True).start()
        else:
            _sent(transactions.send(message, execute).sent)

    # Consuming.

    def subscribe(
        self, name: str, mode: str, group: str, topic: str, expression: str, most: str = ""
    ) -> None:
        is_sql = expression.startswith("sql:")
        selector = MessageSelector.sql(expression.removeprefix("sql:")) if is_sql else expression
        client = self._client_of(name)
        if mode == "lite":
            polling = client.polling(
                group, {topic: selector}, LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
            )
            self._poll(name, self._consumers[name].enter_context(polling))
            return
        config = PushConsumerConfig(
            consume_from=ConsumeFrom.FIRST_OFFSET,
            orderly=mode == "orderly",
            message_model=MessageModel.BROADCASTING if mode == "broadcast" else MessageModel.CLUSTERING,
            offsets_directory=f"offsets-{name}" if mode == "broadcast" else None,
            reconsume_max=int(most) if most else None,
            trace_topic=self._trace_topic,
            persist_interval_ms=_OFTEN_MS,
        )

        def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            return None if self._consumed(name, messages) else RetryLater()

        self._begin(name, client.consuming(group, {topic: selector}, listener, config))

    def answer(self, name: str, group: str, topic: str) -> None:
        client = self._client_of(name)

        def listener(messages: Sequence[ReceivedMessage]) -> None:
            for message in messages:
                client.reply(message, b"re:" + message.body)

        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        self._begin(name, client.consuming(group, {topic: "*"}, listener, config))

    def pull(self, group: str, topic: str) -> None:
        with BlockingClient(self._name_server, consumer_group=group, instance="pull") as client:
            for queue in client.queues(topic):
                offset = 0
                while (result := client.pull(queue, offset)).messages:
                    received = [ReceivedMessage(stored, queue, 0) for stored in result.messages]
                    self._consumed("pull", received)
                    offset = result.next_offset
                client.commit(queue, offset)
                _emit(
                    "queue-end",
                    queueId=queue.queue_id,
                    next=offset,
                    max=client.max_offset(queue),
                    min=client.min_offset(queue),
                )

    def close(self, name: str) -> None:
        self._consumers.pop(name).close()

    def _client_of(self, name: str) -> BlockingClient:
        """Return a client of its own: two members of a group have different client ids."""
        self._consumers[name] = ExitStack()
        return self._consumers[name].enter_context(BlockingClient(self._name_server, instance=name))

    def _begin(self, name: str, consuming: AbstractContextManager[None]) -> None:
        self._consumers[name].enter_context(consuming)

    def _poll(self, name: str, poller: BlockingPoller) -> None:
        ending = threading.Event()

        def poll() -> None:
            while not ending.is_set():
                self._consumed(name, poller.poll(200))

        thread = threading.Thread(target=poll)
        thread.start()
        self._consumers[name].callback(thread.join)
        self._consumers[name].callback(ending.set)

    def _consumed(self, name: str, messages: Sequence[ReceivedMessage]) -> bool:
        ok = True
        for message in messages:
            _emit(
                "message",
                consumer=name,
                topic=message.topic,
                msgId=message.message_id,
                body=message.body.decode(),
                tag=message.tag,
                keys=" ".join(message.keys),
                queueId=message.queue.queue_id,
                queueOffset=message.queue_offset,
                reconsumeTimes=message.reconsume_times,
                bornTimestamp=message.stored.message.born_timestamp_ms,
                storeTimestamp=message.stored.store_timestamp_ms,
                receivedMs=time.time_ns() // 1_000_000,
            )
            if message.tag == "dead":
                ok = False
            elif message.tag == "fail" and not message.reconsume_times:
                ok &= (name, message.message_id) in self._failed
                self._failed.add((name, message.message_id))
        return ok


def _status(outcome: Outcome) -> str:
    return "UNKNOWN" if isinstance(outcome, Unknown) else outcome.status


def _sent(outcome: Outcome) -> None:
    if not isinstance(outcome, Sent):
        _emit("not-sent", message=f"{_status(outcome)}: {outcome.remark}")
        return
    _emit(
        "sent",
        status=outcome.status,
        msgId=outcome.message_id,
        offsetMsgId=outcome.offset_message_id,
        queueId=outcome.queue.queue_id,
        queueOffset=outcome.queue_offset,
        handle=outcome.recall_handle,
    )


def main(name_server: str, traces: bool) -> None:
    """Perform the commands of standard input until it ends."""
    program = _Program(name_server, traces)
    commands: dict[str, Callable[..., None]] = {
        command.__name__: command
        for command in (
            *(program.put, program.batch, program.burst, program.recall, program.request),
            *(program.transactions, program.transact, program.subscribe, program.answer, program.pull),
            program.close,
        )
    }
    _emit("ready")
    for line in sys.stdin:
        name, *words = (unquote(word) for word in line.rstrip("\n").split(" "))
        try:
            if name not in commands:
                raise ValueError(f"unsupported command {name}")
            commands[name](*words)
            _emit("done")
        except Exception as error:
            _emit("error", message=f"{type(error).__name__}: {error}")
    program.end()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["trace"])
