"""Tests that no `assert` of impl/ checks what comes from a peer, a file or a user: `python -O` removes it.

Each assertion is listed with the reason why only our own code can make it false. A new one needs a reason
here, or is a check with an error of its own.
"""

import ast
from collections import Counter
from pathlib import Path
from typing import Final

IMPL: Final = Path(__file__).parents[2] / "impl"

TYPES: Final = "narrows a type: our own code has set or created it before, in this class or its caller"
DECODED: Final = "narrows a type: the decoder of the request code returns no other"
CHECKED: Final = "restates what was checked with an error of its own before"
OWN: Final = "our own arithmetic, on values that no other process chooses"

REVIEWED: Final = {
    "admin/run": {TYPES: ["cluster is not None"]},
    "broker/broker": {
        TYPES: [
            "self._server is not None",
            *["self.services is not None"] * 6,
            "self._registrar is not None",
        ]
    },
    "broker/processors/send": {TYPES: ["services.events is not None"]},
    "broker/registration": {TYPES: ["self._source is not None"]},
    "broker/replicas": {TYPES: ["isinstance(store, MessageStore)"] * 3},
    "broker/requests/administrative_events": {TYPES: ["services.events is not None"]},
    "broker/state/offsets": {TYPES: ["self.unsent is not None"]},
    "broker/state/topics": {TYPES: ["existing is not None"]},
    "client/connection/name_server_choice": {TYPES: ["failure is not None"], CHECKED: ["name_servers"]},
    "client/consuming/assigned_queues": {OWN: ["queue not in self._assigned"]},
    "client/consuming/concurrent": {TYPES: ["me is not None"]},
    "client/consuming/listener": {CHECKED: ["inspect.isawaitable(answer)"]},
    "client/consuming/orderly": {OWN: ["held.is_dropped"]},
    "client/consuming/process_queue": {
        CHECKED: ["message.queue_offset >= self._end"],  # assigned_queues checks the order of each answer
        OWN: ["message.queue_offset in self._messages"],
    },
    "client/consuming/push_consumer": {
        TYPES: ["self._locks is not None", "isinstance(self._consumption, ConcurrentConsumption)"]
    },
    "client/producing/producer": {
        TYPES: ["ended.response is not None", "end.response is not None", "end.queue is not None"]
    },
    "diagnosis/question": {
        TYPES: [
            "question.key is not None",
            "reader is not None",
            "question.topic is not None",
            "question.group is not None",
        ]
    },
    "dledger/config": {CHECKED: ["found is not None"]},
    "dledger/core": {OWN: ["index <= state.terms.end", "not state.changes"]},
    "dledger/election": {TYPES: ["self._round is not None", "waiting is not None"]},
    "dledger/entry_format": {CHECKED: ["size >= FILLER_BYTES"]},
    "dledger/events": {TYPES: ["entry is not None"]},
    "dledger/ledger": {
        TYPES: ["isinstance(draft, (bytes, bytearray))"],
        CHECKED: ["entry.index == self._end_index + 1"],  # log_replication checks each push
    },
    "dledger/node": {
        TYPES: ["self._member is not None"],
        DECODED: [
            "isinstance(request, (VoteRequest, HeartBeatRequest, PushRequest, TransferRequest))",
            "isinstance(request, AppendRequest)",
            "isinstance(request, GetRequest)",
            "isinstance(request, MetadataRequest)",
        ],
        OWN: ["not isinstance(change, Ballot)"],
    },
    "dledger/log_replication": {OWN: ["batch"]},
    "dledger/state": {
        OWN: ["self.role is Role.CANDIDATE"],
        CHECKED: [
            "entry.index == self.terms.end + 1",  # by log_replication
            "end >= self.commit",  # by log_replication
            "self.known > self.term",  # by election
        ],
    },
    "dledger/terms": {CHECKED: ["term >= self.end_term", "end <= self.end"]},  # by log_replication
    "embedded/broker_process": {TYPES: ["process.stdout is not None"]},
    "embedded/loop_thread": {TYPES: [*["self._loop is not None"] * 2, "self._thread is not None"]},
    "embedded/testing_speed": {TYPES: [*["address is not None"] * 2, "found is not None"]},
    "integrations/faststream_broker": {
        TYPES: [*["site is not None"] * 2, "isinstance(producer, CommandProducer)"]
    },
    "remoting/budget": {OWN: ["left >= 0"]},
    "remoting/command": {OWN: ["-(1 << 15) <= command.code < 1 << 15"]},  # response codes of our own
    "replication/client": {TYPES: ["self._connection is not None"] * 2},
    "replication/server": {TYPES: ["self._feed.sent is not None"]},
    "runtime/simulated_disk": {OWN: ["parent(source) == parent(target)"]},
    "runtime/simulated_internet": {TYPES: ["isinstance(loop, SimulatedLoop)"]},
    "store/appender": {
        TYPES: ["self._events is not None"],
        CHECKED: ["len(messages) == 1 or len(set(map(_place, messages))) == 1", "queued"],
    },
    "store/base": {TYPES: ["self._lock is not None"]},
    "store/files/consume_queue": {OWN: ["_UNIT.size == QUEUE_UNIT_BYTES"], CHECKED: ["self.end == 0"]},
    "store/files/index_file": {TYPES: ["self._slots is not None"]},
    "store/files/record": {CHECKED: ["size >= FILLER_BYTES"]},
    "store/files/sealed_file": {OWN: ["content.endswith(b'}')"]},
    "store/files/segments": {
        CHECKED: ["offset + len(data) <= self.segment_bytes"],
        OWN: ["not self._segments or start == self.capacity_end"],
    },
    "store/recovery": {TYPES: ["queue is not None"]},
}


def assertions() -> Counter[tuple[str, str]]:
    """Return the conditions that impl/ asserts, each with its module."""
    found: Counter[tuple[str, str]] = Counter()
    for file in IMPL.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        if "assert " in source:
            module = str(file.relative_to(IMPL).with_suffix(""))
            tree = ast.walk(ast.parse(source))
            found.update((module, ast.unparse(one.test)) for one in tree if isinstance(one, ast.Assert))
    return found


def test_each_assertion_was_reviewed() -> None:
    reviewed = Counter(
        (module, condition)
        for module, reasons in REVIEWED.items()
        for conditions in reasons.values()
        for condition in conditions
    )
    assert assertions() == reviewed
