"""The transactions of a broker as a target for behaviours of Transactions.

The broker's processors get the requests, and its work is done step by step. A message has an immunity time
of its own, so that it is over when the script says so. A producer is represented by its requests.

The broker writes an operation before its progress passes a message, and flushes its log before that: the
model needs neither. Its progress may therefore be ahead of the script, or the step comes too early. A crash
after which the progress is older than the one in the file is a takeover by a slave.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.recorded_log import (
    ADDRESS,
    BROKER,
    TOPIC,
    ClientConnection,
    RecordedLog,
    channel,
    send_request,
    sent,
    services_of,
)
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.impl.broker import half_messages
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.half_messages import DISCARD_TOPIC, HALF_TOPIC, OPERATION_TOPIC, PROGRESS_GROUP
from mqproof.impl.broker.processors import transaction_ends
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import CheckTransactionRequest, EndTransactionRequest
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.store.config import StoreConfig
from mqproof.reference import transactions as reference

_STORE: Final = StoreConfig(
    commit_log_segment_bytes=1 << 14, consume_queue_segment_bytes=20 * 64, index_enabled=False
)
_GROUP: Final = "P"
_IMMUNITY_S: Final = 10
"""The time between two moments at which the immunity time of a message is over."""
_NEVER_MS: Final = 10**12
_ENDS: Final = {"commit": 8, "rollback": 12}
_KINDS: Final = {HALF_TOPIC: "half", TOPIC: "final", DISCARD_TOPIC: "discarded", OPERATION_TOPIC: "op"}

_Request = tuple[str, int, str]


class SteppedTransactions:
    """Drives a broker through a behaviour of Transactions.

    Names of variables and actions are those of Transactions.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._states = list(script.states())
        self._at = 0
        self._config: reference.Config = bounded("Transactions", script.configuration)
        self._loop = StepLoop("mqproof.impl")
        self._run = self._loop.run
        self._log = RecordedLog(_STORE)
        self._connection = ClientConnection()
        self._services = SimpleNamespace(
            config=BrokerConfig(name=BROKER, transaction_checks_max=self._config.checks_max),
            runtime=self._log.runtime,
            address=ADDRESS,
            is_slave=False,
            topics={TOPIC: TopicConfig(TOPIC, read_queue_nums=1, write_queue_nums=1)},
            clients=SimpleNamespace(next_producer=lambda _group: self._connection),
            statistics=Statistics("cluster"),
            events=None,
            tracing_fields=dict,
        )
        self._requests: dict[_Request, Command] = {}
        self._immune = [step.parameters[0] for step in self._steps if step.action == "Ripen"]
        self._stored = 0
        """The progress in the file."""
        self._operations_at = {0: 0}
        """The progress in the half queue to that in the operation queue, as the broker stored them."""
        self._repeated: set[str] = set()
        """The transactions whose ends a start found in the log, without an operation."""
        self._start()

    def take(self, at: int) -> None:
        step = self._steps[at]
        _ACTIONS[step.action](self, *step.parameters)
        self._at = at + 1

    def look(self) -> Variables:
        shown = {"log": self._shown_log(), "ready": self._log.is_up}
        if not self._log.is_up:
            return {**shown, "pending": [], "progress": self._stored}
        table = self._transactions._table
        ended = table._ended.keys() - self._found_ended
        return {**shown, "pending": sorted(self._tx_at(original) for original in ended), **self._progress()}

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        return tried is not None and self._log.is_up and bool(tried(self, *step.parameters))

    def close(self) -> None:
        self._loop.close()

    # Producers

    def _send(self, tx: str) -> None:
        over = self._immune.index(tx) + 1 if tx in self._immune else len(self._immune) + 1
        immunity_s = _IMMUNITY_S * (over - self._ripened())
        properties = {
            half_messages.HALF_MARK: "true",
            half_messages.PRODUCER_GROUP: _GROUP,
            half_messages.IMMUNITY_S: str(immunity_s),
        }
        answer = self._run(sent(self._services, send_request(tx, properties)))
        if answer.code != ResponseCode.SUCCESS:
            raise DeviationError(f"the half message of {tx} was refused: {answer.remark}")

    def _report(self, tx: str, half: int, end: str) -> None:
        stored = self._halves()[half - 1]
        header = EndTransactionRequest(_GROUP, stored.queue_offset, stored.commit_offset, _ENDS[end], tx)
        self._requests[tx, half, end] = new_request(RequestCode.END_TRANSACTION, headers.write(header))

    def _only_known_to_producers(self, tx: str) -> None:
        """The local transaction runs and ends: the broker does not know it."""

    # The broker

    def _end(self, tx: str, half: int, end: str) -> None:
        code, remark = self._run(self._ended(self._requests[tx, half, end]))
        if code != ResponseCode.SUCCESS:
            raise DeviationError(f"the {end} of {tx} was refused: {remark}")

    async def _ended(self, request: Command) -> tuple[int, str | None]:
        try:
            reply = transaction_ends.end_transaction(services_of(self._services), request, channel())
        except RefusedError as error:
            return error.code, error.remark
        answer = reply if reply is None or isinstance(reply, Command) else await reply
        assert answer is not None, "only an unknown end gets no answer"
        return answer.code, answer.remark

    def _write_operations(self) -> None:
        self._run(self._transactions._write_operation())

    def _check(self, tx: str) -> None:
        if any(reference.may_check(self._state(), other) for other in self._config.txs if other != tx):
            raise ImpossibleError("the broker checks all transactions that are due")
        self._run(self._check_all())
        asked, self._connection.received = self._connection.received, []
        copy = self._halves()[-1]
        headers_of = [headers.read(CheckTransactionRequest, request.fields) for request in asked]
        named = [(header.tran_state_table_offset, header.commit_log_offset) for header in headers_of]
        if named != [(copy.queue_offset, copy.commit_offset)]:
            raise DeviationError(f"the checks are of {named}, one of {copy.queue_offset} expected")

    def _discard(self, tx: str) -> None:
        if any(reference.may_check(self._state(), other) for other in self._config.txs if other != tx):
            raise ImpossibleError("the broker checks all transactions that are due")
        self._run(self._check_all())

    async def _check_all(self) -> None:
        await self._transactions._check_all(_NEVER_MS, self._config.checks_max, self._ask, _topic_exists)

    def _ask(self, copy: StoredMessage) -> None:
        """Ask a producer; its connection breaks then, which must not end later checks."""
        transaction_ends.ask_producer(services_of(self._services), copy)
        raise OSError("the connection is closed")

    def _advance(self) -> None:
        self._run(self._transactions._advance(self._log.offsets))
        self._run(self._log.offsets.persist())
        self._stored = self._offset(HALF_TOPIC)
        self._operations_at.setdefault(self._stored, self._offset(OPERATION_TOPIC))
        if self._stored >= self._states[self._at + 1]["progress"]:
            return
        if any(self._lacks_operation(tx) for tx in self._config.txs):
            raise ImpossibleError("the broker has to write an operation before")
        raise DeviationError(f"the progress is {self._stored}, although the next half message is done")

    def _secure(self) -> None:
        self._run(self._log.secure())

    def _ripen(self, _tx: str) -> None:
        self._log.clock.advance_ms(_IMMUNITY_S * 1000)

    def _crash(self, length: int, stored: int) -> None:
        if stored not in self._operations_at:
            raise ImpossibleError(f"the broker never stored the progress {stored}")
        self._log.crash(length)
        if stored != self._stored:
            self._run(self._take_over(stored))

    async def _take_over(self, stored: int) -> None:
        """Replace the file of the offsets by that of a slave, which is older."""
        offsets = OffsetTable("config/consumerOffset.json", self._log.runtime)
        offsets.lead()
        offsets.commit(PROGRESS_GROUP, HALF_TOPIC, 0, stored)
        offsets.commit(PROGRESS_GROUP, OPERATION_TOPIC, 0, self._operations_at[stored])
        await offsets.persist()
        self._stored = stored

    def _start(self) -> None:
        self._log.start()
        self._transactions = Transactions(self._log.store)
        self._services.store, self._services.transactions = self._log.store, self._transactions
        self._run(self._transactions._read(self._log.offsets))
        self._transactions._is_ready = True
        self._found_ended = set(self._transactions._table._ended)
        self._repeated |= {self._tx_at(original) for original in self._found_ended}

    # Disabled actions

    def _refuses_end(self, tx: str, half: int, end: str) -> bool:
        """Send an end that names no half message of its transaction, or a transaction that ended."""
        request = self._requests.get((tx, half, end))
        if request is None:
            return False
        self._run(self._ended(request))
        return True

    def _refuses_check(self, _tx: str) -> bool:
        """Let the broker look for transactions to check while none is due."""
        if any(reference.may_check(self._state(), tx) for tx in self._config.txs):
            return False
        self._run(self._check_all())
        if self._connection.received:
            raise DeviationError("the broker asks for the end of a transaction that is not due")
        return True

    def _refuses_operations(self) -> bool:
        if self._found_ended:
            return False  # the broker repeats the operations of ends that the log shows
        if self._transactions._table.awaits_operation:
            raise DeviationError("the broker has an operation to write")
        return True

    def _refuses_advance(self) -> bool:
        """Let the broker store its progress where its flush cannot make a difference."""
        state = self._state()
        if state.safe < len(state.log):
            return False
        self._run(self._transactions._advance(self._log.offsets))
        return True

    # Helper methods

    def _shown_log(self) -> list[dict[str, Any]]:
        """Return the log, without the ends in operations that a start found in the log already."""
        records, wanted = self._log.records(), self._states[self._at]["log"]
        halves = [one.message_id for one in records if one.message.topic == HALF_TOPIC]
        shown = []
        for i, stored in enumerate(records):
            message, kind = stored.message, _KINDS[stored.message.topic]
            of = {stored.message_id}
            if kind == "op":
                of = {halves[place] for place in half_messages.done_by(message)}
                named = set(wanted[i]["of"]) if i < len(wanted) else of
                of = named if of - named <= self._repeated and named <= of else of
            times = half_messages.check_times(message) if kind == "half" else 0
            shown.append({"kind": kind, "of": sorted(of), "times": times})
        return shown

    def _progress(self) -> dict[str, int]:
        """Return the progress; that of the script if what the broker passed in addition is done."""
        own, wanted = self._offset(HALF_TOPIC), self._states[self._at]["progress"]
        state = self._state()._replace(safe=len(self._state().log))
        is_ahead = all(reference.done(state, place) for place in range(wanted + 1, own + 1))
        return {"progress": wanted if own > wanted and is_ahead else own}

    def _state(self) -> reference.State:
        """Return the script's state."""
        state = self._states[self._at]
        log = tuple(reference.Record(one["kind"], frozenset(one["of"]), one["times"]) for one in state["log"])
        return reference.State(
            log, state["safe"], state["ready"], frozenset(state["pending"]), state["progress"],
            frozenset(state["young"]), tuple(state["phase"]),
        )  # fmt: skip

    def _lacks_operation(self, tx: str) -> bool:
        log = self._state().log
        return reference.evidence(log, tx) and not reference.has(log, "op", tx)

    def _halves(self) -> list[StoredMessage]:
        return [one for one in self._log.records() if one.message.topic == HALF_TOPIC]

    def _tx_at(self, original: int) -> str:
        return self._halves()[original].message_id

    def _offset(self, topic: str) -> int:
        return self._log.offsets.query(PROGRESS_GROUP, topic, 0) or 0

    def _ripened(self) -> int:
        return sum(step.action == "Ripen" for step in self._steps[: self._at])


async def _topic_exists() -> None:
    """The topic of discarded messages exists."""


_ACTIONS: Final[Mapping[str, Any]] = {
    "Send": SteppedTransactions._send,
    "Acknowledge": SteppedTransactions._only_known_to_producers,
    "Commit": SteppedTransactions._only_known_to_producers,
    "Abort": SteppedTransactions._only_known_to_producers,
    "Report": SteppedTransactions._report,
    "End": SteppedTransactions._end,
    "WriteOperations": SteppedTransactions._write_operations,
    "Check": SteppedTransactions._check,
    "Discard": SteppedTransactions._discard,
    "Advance": SteppedTransactions._advance,
    "Secure": SteppedTransactions._secure,
    "Ripen": SteppedTransactions._ripen,
    "Crash": SteppedTransactions._crash,
    "Read": SteppedTransactions._start,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "End": SteppedTransactions._refuses_end,
    "Check": SteppedTransactions._refuses_check,
    "Discard": SteppedTransactions._refuses_check,
    "WriteOperations": SteppedTransactions._refuses_operations,
    "Advance": SteppedTransactions._refuses_advance,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
