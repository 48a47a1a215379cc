"""The blocking client on our broker, over sockets: each call, from code without an event loop.

See docs/how-to/client.md. Only this part needs real time, because the client has a thread of its own.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.request_hooks import RequestSummary
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import (
    ClientError,
    MessageError,
    MessageQueue,
    NoReplyError,
    ReceivedMessage,
    RefusalError,
    SendError,
    Sent,
)
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.producing.queue_choice import by_hash
from mqproof.impl.client.producing.transaction_producer import TransactionState
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.loop_thread import LoopThread
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials

_WAIT_S: Final = 12.0
"""The longest time for all calls; with a defect a call may wait for ever."""
_TOPIC: Final = "blocking"
_SENDERS: Final = 20
_LOOKS: Final = 800
_LOOK_S: Final = 0.01


def judge(expect: Expectations) -> None:
    """Make each call, in a thread that is left behind if a call never returns."""
    broker, thread = EmbeddedBroker(sockets=True), LoopThread("broker")
    thread.start_with(broker.start())
    ended: list[str] = []

    def work() -> None:
        try:
            _calls(expect, broker.name_server)
        except Exception as error:  # whatever a defect of the client raises is a difference
            expect.failed("the blocking client", error)
        ended.append("")

    calls = threading.Thread(target=work, daemon=True)
    calls.start()
    calls.join(_WAIT_S)
    expect.equal("every call returns", 1, len(ended))
    thread.end_after(broker.stop())


def _threads() -> list[str]:
    """Return the names of the threads of blocking clients."""
    return [each.name for each in threading.enumerate() if each.name == "mqproof-client"]


class _Hook:
    def __init__(self) -> None:
        self.groups: dict[str, set[str]] = {}

    def before(self, request: RequestSummary) -> None:
        group = request.fields.get("a") or request.fields.get("consumerGroup") or ""
        self.groups.setdefault(request.name, set()).add(group)

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None: ...


def _calls(expect: Expectations, name_server: str) -> None:
    expect.refused("no threads", ValueError, lambda: BlockingClient(name_server, listener_threads=0))
    hook = _Hook()
    client = BlockingClient(
        name_server, consumer_group="pullers", producer=ProducerConfig("senders", default_topic_queues=2),
        client_id="h@blocking", listener_threads=2, credentials=Credentials("key", "secret"), hooks=[hook],
    )  # fmt: skip
    with client as entered:
        expect.equal("what the block receives", True, entered is client)
        _sends(expect, client)
        _pulls(expect, client)
        _polls(expect, client)
        _listens(expect, client)
        _transacts(expect, client)
    expect.equal(
        "the group of sends",
        {"senders"},
        hook.groups.get("SEND_MESSAGE_V2", set()) - {"transactors", "CLIENT_INNER_PRODUCER"},
    )
    expect.equal("the group of commits", True, "pullers" in hook.groups.get("UPDATE_CONSUMER_OFFSET", set()))
    expect.equal("the thread has ended", [], _threads())
    expect.equal("the end of the registration", True, "UNREGISTER_CLIENT" in hook.groups)
    with BlockingClient(name_server, instance="i1", listener_threads=1) as named:
        (queue, _) = named.queues(_TOPIC)
        end = named.max_offset(queue)
        expect.refused("no reply", NoReplyError, lambda: named.request(_text(12), queue, timeout_ms=50))
        asked = named.pull(queue, end).messages
        ids = [each.message.properties.get("REPLY_TO_CLIENT", "").partition("@")[2] for each in asked]
        expect.equal("the instance of a client", ["i1"], ids)
        _many_threads(expect, named)
    failed = BlockingClient(";")
    expect.refused("a client without a name server", ValueError, failed.__enter__)
    expect.equal("its thread has ended", [], _threads())


def _many_threads(expect: Expectations, client: BlockingClient) -> None:
    """More threads send at a time than there are connections for; one thread runs the listener."""
    with ThreadPoolExecutor(_SENDERS) as senders:
        messages = [new_message("threads", b"%d" % n) for n in range(_SENDERS)]
        outcomes = list(senders.map(client.send, messages))
    ids = {each.message_id for each in outcomes if isinstance(each, Sent)}
    expect.equal("the sends of many threads", _SENDERS, len(ids))
    got: list[bytes] = []
    running: list[int] = []

    def listen(received: Sequence[ReceivedMessage]) -> None:
        running.append(threading.get_ident())
        got.extend(each.body for each in received)

    with client.consuming("one-thread", {"threads": "*"}, listen):
        _until(lambda: len(got) >= _SENDERS)
    expect.equal("what one thread receives", sorted(b"%d" % n for n in range(_SENDERS)), sorted(got))
    expect.equal("the threads of its listener", 1, len(set(running)))


def _text(number: int) -> Message:
    return new_message(_TOPIC, b"%d" % number, tag=f"t{number % 2}")


def _sends(expect: Expectations, client: BlockingClient) -> None:
    first = client.send(_text(0))
    expect.equal("a send", "Sent", type(first).__name__)
    queues = client.queues(_TOPIC)
    expect.equal("the queues", [0, 1], [each.queue_id for each in queues])
    one, other = queues
    sent = client.send_or_raise(_text(1), other)
    expect.equal("a send to a queue", other, sent.queue)
    expect.equal(
        "a send by a selector",
        by_hash("x")(queues),
        client.send_or_raise(_text(2), select=by_hash("x")).queue,
    )
    expect.equal("another one", one, _queue(client.send(_text(3), select=lambda known: known[0])))
    expect.equal("one to a queue", one, _queue(client.send(_text(4), one)))
    for later in (
        client.send_later(_text(5), other),
        client.send_later(_text(6), select=lambda known: known[1]),
    ):
        expect.equal("a send in the background", other, _queue(later.result(5)))
    outcomes = client.send_many([_text(7), _text(8)], outstanding=1)
    expect.equal("many sends", 2, len([each for each in outcomes if isinstance(each, Sent)]))
    # Without the queue, two batches would go to both queues of the topic.
    batches = [client.send_batch([_text(number)], one) for number in (9, 10)]
    expect.equal("two batches", [one, one], [_queue(each) for batch in batches for each in batch])
    key = client.send_oneway(_text(11))
    expect.equal("the id of a one-way send", 32, len(key))
    nowhere = MessageQueue(_TOPIC, "nowhere", 0)
    expect.refused("a send to no broker", SendError, lambda: client.send_or_raise(_text(0), nowhere))
    expect.refused("an empty message", MessageError, lambda: client.send(Message(_TOPIC, b"")))
    expect.refused("none outstanding", ValueError, lambda: client.send_many([], outstanding=0))
    expect.refused("a recall without a handle", MessageError, lambda: client.recall(_TOPIC, "x"))
    waiting = client.send_or_raise(new_message(_TOPIC, b"timed", delay=3600))
    expect.accepted("a recall", lambda: client.recall(_TOPIC, waiting.recall_handle or ""))
    expect.refused(
        "a second recall", RefusalError, lambda: client.recall(_TOPIC, waiting.recall_handle or "")
    )
    began_s = time.monotonic()
    expect.refused(
        "a request without a reply", NoReplyError, lambda: client.request(_text(12), one, timeout_ms=60)
    )
    expect.refused(
        "one by a selector",
        NoReplyError,
        lambda: client.request(_text(13), select=lambda known: known[0], timeout_ms=60),
    )
    expect.equal("their time", True, time.monotonic() - began_s < 5)


def _queue(outcome: Any) -> MessageQueue | None:
    return outcome.queue if isinstance(outcome, Sent) else None


def _pulls(expect: Expectations, client: BlockingClient) -> None:
    found: list[bytes] = []
    for _ in range(_LOOKS):  # a one-way send, and the last entries of a queue, come a little later
        found = [
            each.message.body for queue in client.queues(_TOPIC) for each in client.pull(queue, 0).messages
        ]
        if len(found) >= 14:
            break
        time.sleep(_LOOK_S)
    expect.equal("all messages", sorted(b"%d" % n for n in range(14)), sorted(found))
    for queue in client.queues(_TOPIC):
        whole = [each.message.body for each in client.pull(queue, 0).messages]
        end = client.max_offset(queue)
        expect.equal("the end of a queue", len(whole), end)
        expect.equal("the begin of a queue", 0, client.min_offset(queue))
        expect.equal(
            "one message",
            whole[1:2],
            [each.message.body for each in client.pull(queue, 1, max_count=1).messages],
        )
        tagged = [each.message.body for each in client.pull(queue, 0, tags="t1").messages]
        expect.equal("the messages with a tag", [body for body in whole if int(body) % 2], tagged)
        expect.equal("the committed offset before", 0, client.committed(queue))
        client.commit(queue, 2)
        expect.equal("the committed offset", 2, client.committed(queue))
    expect.refused("a pull at no broker", ClientError, lambda: client.pull(MessageQueue(_TOPIC, "x", 0), 0))


def _polls(expect: Expectations, client: BlockingClient) -> None:
    config = LitePullConfig(ConsumeFrom.FIRST_OFFSET)
    queues = client.queues(_TOPIC)
    with client.polling("pollers", {_TOPIC: MessageSelector.tag("t0")}, config) as poller:
        got: list[ReceivedMessage] = []
        while len(got) < 7 and (messages := poller.poll(2000, 3)):
            expect.equal("the size of a poll", True, len(messages) <= 3)
            got += messages
        expect.equal("what polls return", [0, 2, 4, 6, 8, 10, 12], sorted(int(each.body) for each in got))
        expect.equal("the queues of a poller", queues, poller.assignment())
        poller.commit()
        for queue in queues:
            mine = [each.queue_offset for each in got if each.queue == queue]
            expect.equal("the group of pulls has its own offset", 2, client.committed(queue))
            expect.equal("messages of a queue come in order", sorted(mine), mine)
        poller.seek(queues[0], 0)
        again = poller.poll(2000, 1)
        first = min((each.queue_offset for each in got if each.queue == queues[0]), default=None)
        expect.equal("a poll after a seek", [first], [each.queue_offset for each in again])
        expect.equal("an empty poll", [], _drained(poller))
    expect.refused("a poll after the block", ClientError, poller.poll)

    def fail() -> None:
        with client.polling("failing", {_TOPIC: "*"}, config) as one:
            poller_of.append(one)
            raise LookupError("the application fails")

    poller_of: list[Any] = []
    expect.refused("a block that fails", LookupError, fail)
    expect.refused("its poller is stopped", ClientError, lambda: poller_of[0].poll())

    def subscribe_wrongly() -> None:
        with client.polling("failing", {_TOPIC: "a = 1"}):
            pass

    expect.refused("a subscription that is wrong", ValueError, subscribe_wrongly)
    expect.accepted("its group is free again", lambda: _enter(client, config))


def _enter(client: BlockingClient, config: LitePullConfig) -> None:
    with client.polling("failing", {_TOPIC: "*"}, config):
        pass


def _drained(poller: Any) -> list[Any]:
    while poller.poll(50):
        pass
    return poller.poll(1)  # type: ignore[no-any-return]


def _listens(expect: Expectations, client: BlockingClient) -> None:
    """Listeners in threads; one of them replies to requests."""
    got: list[int] = []
    replies: list[Exception] = []
    askers: set[str] = set()

    def listen(messages: Sequence[ReceivedMessage]) -> None:
        for each in messages:
            got.append(int(each.body))
            askers.add(each.properties.get("REPLY_TO_CLIENT", "h@blocking"))
            if each.properties.get("REPLY_TO_CLIENT") and each.body == b"99":
                try:
                    client.reply(each, b"answer", properties={"own": "v"}, timeout_ms=2000)
                except Exception as error:  # compared
                    replies.append(error)

    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    with client.consuming("listeners", {_TOPIC: "*"}, listen, config):
        reply = client.request(new_message(_TOPIC, b"99"), timeout_ms=4000)
        expect.equal("a reply", (b"answer", "v"), (reply.body, reply.properties.get("own")))
        _until(lambda: len(got) >= 15)
    expect.equal("what a listener receives", [*range(14), 99], sorted(got))
    expect.equal("errors of replies", [], replies)
    expect.equal("the client id", {"h@blocking"}, askers)
    count = len(got)
    client.send(_text(14))
    time.sleep(0.05)
    expect.equal("nothing is received after the block", count, len(got))
    running: list[int] = []
    most: list[int] = []

    def listen_slowly(_messages: object) -> None:
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()

    with client.consuming("listeners-2", {_TOPIC: "t0"}, listen_slowly):
        _until(lambda: len(most) >= 8)
    expect.equal(
        "the calls with a tag, and the threads of the client", (8, 2), (len(most), max(most, default=0))
    )

    def fail() -> None:
        with client.consuming("listeners-2", {_TOPIC: "a = 1"}, listen):
            pass

    expect.refused("a listener with a wrong subscription", ValueError, fail)


def _until(holds: Any) -> None:
    for _ in range(_LOOKS):
        if holds():
            return
        time.sleep(_LOOK_S)


def _transacts(expect: Expectations, client: BlockingClient) -> None:
    def check(_message: object, _id: str) -> TransactionState:
        return TransactionState.ROLLBACK

    ran: list[str] = []

    def local(_message: Message, transaction_id: str) -> TransactionState:
        ran.append(transaction_id)
        return TransactionState.COMMIT

    def fail(_message: Message, _id: str) -> TransactionState:
        raise RuntimeError("the transaction fails")

    queue = client.queues(_TOPIC)[0]
    before = client.max_offset(queue)
    with client.transactions(check, ProducerConfig("transactors")) as transactions:
        outcome = transactions.send(_text(15), local, queue)
        expect.equal("a transaction", (TransactionState.COMMIT, queue), (outcome.state, _queue(outcome.sent)))
        expect.equal("the id of a transaction", [outcome.sent.message_id], ran)
        failed = transactions.send(_text(16), fail)
        expect.equal("a transaction that fails", (TransactionState.UNKNOWN, "RuntimeError"),
                     (failed.state, type(failed.error).__name__))  # fmt: skip
    _until(lambda: client.max_offset(queue) > before)
    expect.equal("the committed message", before + 1, client.max_offset(queue))
    with client.transactions(check, ProducerConfig("transactors")):
        pass
