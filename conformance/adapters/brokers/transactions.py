"""A broker as a target of the suite of transactions, and the reference as one."""

import asyncio
import random
from typing import Final

from mqproof.conformance.adapters.brokers.environments import CONFIG, Environment, OnEnvironment, loop_time_s
from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault
from mqproof.conformance.engine.targets import REFERENCE, TargetError
from mqproof.conformance.suites.transactions.target import Answer, Capability, End, Half
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import Heartbeat, ProducerData
from mqproof.impl.remoting.channel import Channel, RemotingError, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    PULL_HAS_SUBSCRIPTION,
    CheckTransactionRequest,
    EndTransactionRequest,
    PullRequest,
    PullResponse,
    SendRequest,
    SendResponse,
)
from mqproof.impl.remoting.message import encode_properties, parse_offset_message_id
from mqproof.impl.remoting.request_handler import handler
from mqproof.reference import transactions
from mqproof.reference.transactions import Config, Request

_CODES: Final = {End.COMMIT: 8, End.ROLLBACK: 12}
_TIMEOUT_S: Final = 30.0
_GREETINGS_MAX: Final = 3
_KEEP_ALIVE_S: Final = 30.0


class BrokerTransactions(OnEnvironment):
    """The target of the suite that drives a broker in an environment."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.round_s = CONFIG.transaction_check_interval_ms / 1000
        able = frozenset(Capability) if environment.is_simulated else frozenset[Capability]()
        self.capabilities: frozenset[Capability | BrokerFault] = able | environment.faults

    def open(self) -> None:
        self._arrived: list[Half] = []
        self._arrive()

    def send_half(self, msg_id: str) -> Half:
        return self._environment.run(self._send_half(msg_id))

    def end(self, half: Half, end: End) -> Answer:
        return self._environment.run(self._end(half, end))

    def checks(self) -> tuple[Half, ...]:
        arrived, self._arrived = self._arrived, []
        return tuple(arrived)

    def read(self) -> tuple[str, ...]:
        return self._environment.run(self._read())

    def now_s(self) -> float:
        return self._environment.run(loop_time_s())

    def wait(self, seconds: float) -> None:
        self._environment.run(self._wait(seconds))

    def inject(self, fault: BrokerFault) -> None:
        super().inject(fault)
        self._environment.run(self._greet())

    async def _open(self) -> None:
        self._topic, self._group = f"{self._caller.prefix}_topic", f"{self._caller.prefix}_producers"
        await self._caller.make_topic(self._topic, 1)
        handle = handler({RequestCode.CHECK_TRANSACTION_STATE: self._checked})
        self._producer = RemotingClient(self._environment.runtime.remoting, handle)
        await self._greet()

    async def _leave(self) -> None:
        await self._producer.close()
        await self._caller.forget([self._topic], [])
        await self._caller.stop()

    async def _greet(self) -> None:
        """Register the producer at the broker."""
        body = java_json.write(
            Heartbeat(f"127.0.0.1@{self._caller.prefix}", [], [ProducerData(self._group)]), standard=True
        )
        for attempt in range(1, _GREETINGS_MAX + 1):
            try:
                request = new_request(RequestCode.HEART_BEAT, body=body)
                await self._producer.invoke(self._caller.broker, request, _TIMEOUT_S)
            except RemotingError as error:  # the connection that a fault has ended
                if attempt == _GREETINGS_MAX:
                    raise TargetError(f"{self._caller.broker}: {error}") from None
            else:
                return

    def _checked(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a handler's signature
        header = headers.read(CheckTransactionRequest, request.fields)
        (stored,) = read_records(request.body)
        msg_id = stored.message.body.decode()
        self._arrived.append(Half(msg_id, header.tran_state_table_offset, header.commit_log_offset))
        return None

    async def _send_half(self, msg_id: str) -> Half:
        properties = {"TRAN_MSG": "true", "PGROUP": self._group, "UNIQ_KEY": self._key(msg_id)}
        header = SendRequest(
            producer_group=self._group, topic=self._topic, default_topic="TBW102", default_topic_queue_nums=1,
            queue_id=0, sys_flag=4, born_timestamp=int(1000 * await loop_time_s()), flag=0,
            properties=encode_properties(properties), reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        fields = headers.write_send_v2(header)
        answer = await self._caller.request_fields(RequestCode.SEND_MESSAGE_V2, fields, msg_id.encode())
        sent = headers.read(SendResponse, answer.fields)
        _, commit_offset = parse_offset_message_id(sent.msg_id)
        return Half(msg_id, sent.queue_offset, commit_offset)

    async def _end(self, half: Half, end: End) -> Answer:
        header = EndTransactionRequest(
            self._group, half.place, half.commit_offset, _CODES[end], self._key(half.msg_id)
        )
        codes = (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
        answer = await self._caller.request(RequestCode.END_TRANSACTION, header, accepts=codes)
        return Answer.OK if answer.code == ResponseCode.SUCCESS else Answer.REFUSED

    async def _read(self) -> tuple[str, ...]:
        found: list[str] = []
        offset = 0
        while True:
            header = PullRequest(
                consumer_group=self._group, topic=self._topic, queue_id=0, queue_offset=offset,
                max_msg_nums=32, sys_flag=PULL_HAS_SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0,
                sub_version=0, subscription="*", expression_type="TAG",
            )  # fmt: skip
            codes = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED)
            answer = await self._caller.request(RequestCode.PULL_MESSAGE, header, accepts=codes)
            if answer.code != ResponseCode.SUCCESS:
                return tuple(found)
            offset = headers.read(PullResponse, answer.fields).next_begin_offset
            found += (stored.message.body.decode() for stored in read_records(answer.body))

    async def _wait(self, seconds: float) -> None:
        """Let time pass. Brokers close connections that are idle, so each is used from time to time."""
        end_s = await loop_time_s() + seconds
        while (left_s := end_s - await loop_time_s()) > 0:
            await asyncio.sleep(min(left_s, _KEEP_ALIVE_S))
            await self._greet()
            await self._caller.until_it_serves()

    def _key(self, msg_id: str) -> str:
        return f"{self._caller.prefix}-{msg_id}"


class ReferenceTransactions:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    capabilities = frozenset[Capability | BrokerFault]({*Capability, *BrokerFault})
    round_s = 30.0
    _config = Config(("t",), ("t",), checks_max=2)

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self) -> None:
        self._now_s = 0.0
        self._rounds = 0
        self._states: dict[str, transactions.State] = {}
        self._sent_s: dict[str, float] = {}
        self._ended: dict[str, set[str]] = {}
        self._visible: list[str] = []
        self._arrived: list[Half] = []

    def send_half(self, msg_id: str) -> Half:
        (state,) = transactions.initial(self._config)
        state = _taken(transactions.send(self._config, state, "t"))
        state = _taken(transactions.secure(self._config, state))
        self._states[msg_id] = state._replace(young=frozenset())
        self._sent_s[msg_id] = self._now_s
        return Half(msg_id, 0, 0)

    def end(self, half: Half, end: End) -> Answer:
        state, known = self._states[half.msg_id], self._ended.setdefault(half.msg_id, set())
        request = state._replace(requests=frozenset({Request("t", 1, str(end))}))
        after = transactions.end_transaction(self._config, request, "t", 1, str(end))
        if after is None:
            return Answer.OK if end in known else Answer.REFUSED
        known.add(str(end))
        if end is End.COMMIT:
            self._visible.append(half.msg_id)
            after = after._replace(safe=len(after.log))
        self._states[half.msg_id] = after._replace(requests=frozenset())
        return Answer.OK

    def checks(self) -> tuple[Half, ...]:
        arrived, self._arrived = self._arrived, []
        return tuple(arrived)

    def read(self) -> tuple[str, ...]:
        return tuple(self._visible)

    def now_s(self) -> float:
        return self._now_s

    def wait(self, seconds: float) -> None:
        """Let time pass: operations are written, and due transactions are checked in each round."""
        until_s = self._now_s + seconds
        while (self._rounds + 1) * self.round_s <= until_s:
            self._rounds += 1
            self._now_s = self._rounds * self.round_s
            self._check_all()
        self._now_s = until_s
        if seconds >= 4:
            for msg_id, state in self._states.items():
                written = transactions.write_operations(self._config, state) or state
                self._states[msg_id] = written._replace(safe=len(written.log))

    def _check_all(self) -> None:
        for msg_id, state in self._states.items():
            if self._now_s - self._sent_s[msg_id] < 6:
                continue
            checked = transactions.check(self._config, state, "t")
            if checked is not None:
                self._arrived.append(Half(msg_id, 0, 0))
            after = checked or transactions.discard(self._config, state, "t") or state
            self._states[msg_id] = after._replace(safe=len(after.log))

    def inject(self, fault: BrokerFault) -> None:
        if fault not in ENDS:
            return
        self._now_s += 1
        for msg_id, state in self._states.items():
            shortest = state.safe if fault is BrokerFault.POWER_LOSS else len(state.log)
            length = self._chance.randint(shortest, len(state.log))
            crashed = _taken(transactions.crash(self._config, state, length, 0))
            self._states[msg_id] = _taken(transactions.read(self._config, crashed))
            if state.pending and not transactions.evidence(crashed.log, "t"):
                self._ended[msg_id] = set()

    def close(self) -> None:
        pass


def _taken(state: transactions.State | None) -> transactions.State:
    assert state is not None
    return state
