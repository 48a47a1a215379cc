"""The connections of a client for threads: sends share lasting ones, and none stays open after its end.

See docs/explanation/client-speed.md. The server is a socket of its own thread, so this part needs real time.
"""

import json
import threading
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import MESSAGE_ID, ScriptedServers
from mqproof.conformance.adapters.client_calls.thread_requests import Peer, listening_peer
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.request_hooks import RequestSummary
from mqproof.impl.client.model import Sent, Unknown
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.remoting.command import Command, encode
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials

_ROUTE, _BEAT, _LEAVE, _SEND, _BATCH = 105, 34, 35, 310, 320
_WAIT_S: Final = 5.0
_LANES, _THREADS = 16, 20


class _Broker:
    """A name server and broker at one address, which counts the requests that it answers."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.counts: Counter[int] = Counter()
        self.signed = 0
        self.is_silent = False
        self.gate: threading.Barrier | None = None
        peer.answer = self._answer

    def _answer(self, request: Command) -> bytes:
        self.counts[request.code] += 1
        self.signed += "Signature" in request.fields
        if request.code == _ROUTE:
            return encode(request.answer(0, {}, self._route()))
        if request.code in (_SEND, _BATCH):
            if self.gate is not None and not self.gate.broken:
                self.gate.wait(_WAIT_S)
            fields = {"msgId": MESSAGE_ID, "queueId": "0", "queueOffset": "7"}
            return b"" if self.is_silent else encode(request.answer(0, fields))
        return encode(request.answer(0, {}))

    def _route(self) -> bytes:
        broker = {"brokerAddrs": {"0": str(self._peer.address)}, "brokerName": "broker-a", "cluster": "c"}
        queue = {
            "brokerName": "broker-a", "perm": 6, "readQueueNums": 1, "topicSysFlag": 0, "writeQueueNums": 1,
        }  # fmt: skip
        return json.dumps({"brokerDatas": [broker], "filterServerTable": {}, "queueDatas": [queue]}).encode()


async def judge(expect: Expectations, _servers: ScriptedServers) -> None:
    for credentials in (None, Credentials("key", "secret")):
        with listening_peer() as peer:
            _sends(expect, peer, credentials)
    with listening_peer() as peer:
        _many(expect, peer)
    with listening_peer() as peer:
        _hooked(expect, peer)


def _sends(expect: Expectations, peer: Peer, credentials: Credentials | None) -> None:
    broker = _Broker(peer)
    config = ProducerConfig("g", retries=0)
    with BlockingClient(
        str(peer.address), producer=config, client_id="h@i", credentials=credentials
    ) as client:
        outcomes = [client.send(Message("A", b"%d" % number)) for number in range(4)]
        outcomes += client.send_batch([Message("A", b"a"), Message("A", b"b")])
        sent = [(each.queue_offset, each.attempts) for each in outcomes if isinstance(each, Sent)]
        expect.equal("the sends of a thread", [(7, 1)] * 5 + [(8, 1)], sent)
        expect.equal("the connections of its sends and of the loop", 2, peer.opened)
        client.send_later(Message("A", b"x")).result(_WAIT_S)
        expect.equal("the connections after a send in the loop", 2, peer.opened)
        broker.is_silent = True
        late = client.send(Message("A", b"y"), timeout_ms=60)
        expect.equal("a send without an answer", (Unknown, 1), (type(late), late.attempts))
        expect.equal("its connection ends", True, peer.ended.acquire(timeout=_WAIT_S))
        broker.is_silent = False
        again = [type(client.send(Message("A", b"z"))) for _ in range(2)]
        expect.equal("the sends after it", [Sent, Sent], again)
        expect.equal("the connections after it", 3, peer.opened)
    ended = [peer.ended.acquire(timeout=_WAIT_S) for _ in range(2)]
    expect.equal("the connections that end with the client", [True, True], ended)
    counts = {code: broker.counts[code] for code in (_ROUTE, _SEND, _BATCH, _LEAVE)}
    expect.equal("the requests", {_ROUTE: 1, _SEND: 8, _BATCH: 1, _LEAVE: 1}, counts)
    expect.equal(
        "the requests with a signature", sum(broker.counts.values()) if credentials else 0, broker.signed
    )
    expect.equal("the connections of all", 3, peer.opened)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the coroutine of the send has no loop any more
        expect.refused("a send after the end", RuntimeError, lambda: client.send(Message("A", b"1")))
    expect.equal("the connections after the end", 3, peer.opened)


def _many(expect: Expectations, peer: Peer) -> None:
    """So many threads send at once on connections of their own; the sends of more threads share one."""
    broker = _Broker(peer)
    with BlockingClient(str(peer.address), client_id="h@i") as client:
        client.send(Message("A", b"1"))
        broker.gate = threading.Barrier(_LANES + 1)  # until a send of the loop is answered, too
        with ThreadPoolExecutor(_THREADS) as threads:
            sends = [threads.submit(client.send, Message("A", b"2")) for _ in range(_LANES + 1)]
            kinds = [type(each.result(_WAIT_S)) for each in sends]
    expect.equal("the sends of many threads", [Sent] * (_LANES + 1), kinds)
    expect.equal("their connections", _LANES + 1, peer.opened)


class _Hook:
    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, request: RequestSummary) -> None:
        self.names.append(request.name)

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None: ...


def _hooked(expect: Expectations, peer: Peer) -> None:
    """With hooks, each send runs in the loop: the hooks see it, and no thread has a connection."""
    _Broker(peer)
    hook = _Hook()
    with BlockingClient(str(peer.address), client_id="h@i", hooks=[hook]) as client:
        kinds = [type(client.send(Message("A", b"1"))) for _ in range(2)]
    expect.equal("the sends with a hook", [Sent, Sent], kinds)
    expect.equal("what the hook sees", 2, hook.names.count("SEND_MESSAGE_V2"))
    expect.equal("the connections with a hook", 1, peer.opened)
