"""One chunk of generated traffic: the events of producers, brokers and consumers, in numpy arrays.

scenario.py describes the scenario. This module turns it into rows, and records each injected anomaly in the
ground truth.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from mqproof.spark_audit.generator import scenario as sc
from mqproof.spark_audit.generator.rows import NONE, Rows, Words, message_ids
from mqproof.spark_audit.generator.scenario import Bools, Ints, Outcome

COMMIT_EVERY: Final = 8
FLUSH_EVERY: Final = 8
ROLLBACK: Final = 5
"""By how much committed offsets go back in an injected regression."""
REPEAT: Final = 3
"""Number of records of a queue that are delivered again after a rebalance or restart."""

_CRASHES: Final = ("crash_sync", "crash_async")
"""The pauses in which the first and the second broker crash."""

START_US: Final = 1_790_000_000_000_000


@dataclass(frozen=True, slots=True)
class State:
    """The offsets and event numbers at the beginning of a chunk."""

    queues: tuple[int, ...] = (0,) * sc.QUEUES
    logs: tuple[int, ...] = (0,) * len(sc.BROKERS)
    retries: tuple[int, ...] = (0,) * len(sc.BROKERS)
    nodes: dict[str, int] = field(default_factory=dict)

    def plus(self, more: "State") -> "State":
        nodes = dict(self.nodes)
        for node, count in more.nodes.items():
            nodes[node] = nodes.get(node, 0) + count
        return State(
            _sums(self.queues, more.queues),
            _sums(self.logs, more.logs),
            _sums(self.retries, more.retries),
            nodes,
        )


def _sums(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _moved(begun: tuple[int, ...], ended: Ints) -> tuple[int, ...]:
    return tuple(int(end) - begin for begin, end in zip(begun, ended, strict=True))


class Chunk:
    """One chunk of traffic, as arrays.

    Arrays of messages have one element per message; arrays of records (r_) have one per append, in time
    order.
    """

    def __init__(self, plan: sc.Plan, number: int, state: State, random: np.random.Generator) -> None:
        self.begun, self.random, self.number = state, random, number
        self.words = Words()
        self.queue_next = np.array(state.queues, dtype=np.int64)
        self.log_end = np.array(state.logs, dtype=np.int64)
        self.retry_next = np.array(state.retries, dtype=np.int64)
        self.has_faults = sc.has_faults(number)
        # Every rebalance before this chunk moved the queues to the next owner.
        rebalances = -(-number // sc.FAULTS_EVERY)
        self.epochs = [-(-(rebalances - group) // len(sc.GROUPS)) for group in range(len(sc.GROUPS))]
        self.reports_order = bool(plan.injected["overlap"].sum())
        self.is_last = number == plan.chunks - 1
        self.n = n = plan.messages
        self.begin = START_US + number * (sc.CHUNK_US + (len(sc.PAUSES) + 1) * sc.PAUSE_US)
        self.step = sc.CHUNK_US // n
        outcomes = sc.draw_outcomes(plan, number, random)
        self.outcome = outcomes.outcome
        index = np.arange(n, dtype=np.int64)
        self.pause_at = {name: int(part * n) for name, part in sc.PAUSES.items()}
        pauses = sum((index >= at).astype(np.int64) for at in self.pause_at.values())
        in_burst = index * 2 * sc.BURSTS // n % 2 == 0
        pace = np.where(in_burst, self.step // 2, self.step + self.step // 2)
        self.sent: Ints = self.begin + np.cumsum(pace, dtype=np.int64) + pauses * sc.PAUSE_US
        self.message = number * n + index
        self.queue = sc.queue_of(index)
        self.rows = Rows(self.words)
        self.truth: list[dict[str, Any]] = []
        self._names()
        self._records()
        self._produce()
        self._consume(outcomes.regressions)
        self._add_faults()

    def table(self) -> pa.Table:
        """Return the events, ordered by time."""
        return self.rows.table(self.begun.nodes)

    def moved(self) -> State:
        """Return by how much the chunk advances a state."""
        return State(
            _moved(self.begun.queues, self.queue_next),
            _moved(self.begun.logs, self.log_end),
            _moved(self.begun.retries, self.retry_next),
            self.rows.counts(),
        )

    def _names(self) -> None:
        words = self.words
        self.broker_word = words.of(sc.BROKERS)
        self.topic_word = words.of(sc.TOPICS)
        self.producer_word = words.of(sc.PRODUCERS)
        self.group_word = words.of(sc.GROUPS)
        self.consumer_word = np.stack(
            [words.of(tuple(f"{group}-{c}" for c in range(sc.CONSUMERS_A_GROUP))) for group in sc.GROUPS]
        )

    def _has_outcome(self, *outcomes: Outcome) -> Bools:
        return np.isin(self.outcome, [int(outcome) for outcome in outcomes])

    def _pause(self, name: str) -> int:
        """Return the middle of a pause: nothing else happens for almost half a second on either side."""
        at = self.pause_at[name]
        return int(self.sent[at - 1]) + self.step + sc.PAUSE_US // 2

    # --- records that brokers store

    def _records(self) -> None:
        first = ~self._has_outcome(Outcome.NOT_STORED, Outcome.SEND_ONLY)
        retried = self._has_outcome(Outcome.RETRIED)
        doubled = self._has_outcome(Outcome.DOUBLE_APPEND)
        cut_retried = np.flatnonzero(self._has_outcome(Outcome.CUT_RETRIED))
        sync_tail = sc.broker_of(self.queue[cut_retried]) == 0
        resent_at = np.where(sync_tail, self._pause("crash_sync"), self._pause("crash_async"))
        resent_at = resent_at + 100_000 + np.arange(len(cut_retried)) * 1000
        index = np.arange(self.n, dtype=np.int64)
        parts = [
            (index[first], self.sent[first] + 300, self.queue[first], 1),
            (index[retried], self.sent[retried] + self.step // 2, sc.elsewhere(self.queue[retried]), 2),
            (index[doubled], self.sent[doubled] + self.step // 2, self.queue[doubled], 1),
            (cut_retried, resent_at, sc.elsewhere(self.queue[cut_retried]), 2),
        ]
        owner = np.concatenate([part[0] for part in parts])
        at = np.concatenate([part[1] for part in parts])
        queue = np.concatenate([part[2] for part in parts])
        attempt = np.concatenate([np.full(len(part[0]), part[3], dtype=np.int64) for part in parts])
        order = np.argsort(at, kind="stable")
        self.r_message, self.r_at, self.r_queue, self.r_attempt = (
            owner[order],
            at[order],
            queue[order],
            attempt[order],
        )
        self.r_broker = sc.broker_of(self.r_queue)
        cut = self._has_outcome(Outcome.CUT_ACKED, Outcome.CUT_UNACKED, Outcome.CUT_RETRIED)[self.r_message]
        self.r_cut = cut & (self.r_attempt == 1)
        self._offsets()

    def _offsets(self) -> None:
        """Assign queue and commit offsets.

        The offsets of records truncated by a crash are used again afterwards.
        """
        self.r_offset = np.zeros(len(self.r_at), dtype=np.int64)
        self.r_commit = np.zeros(len(self.r_at), dtype=np.int64)
        self.r_size = self.random.integers(180, 400, len(self.r_at))
        for queue in range(sc.QUEUES):
            own = np.flatnonzero(self.r_queue == queue)
            kept = ~self.r_cut[own]
            before = np.cumsum(kept) - kept
            # Truncated records of one queue are consecutive, without a kept one in between.
            run = np.arange(len(own)) - np.maximum.accumulate(np.where(kept, np.arange(len(own)), -1)) - 1
            self.r_offset[own] = self.queue_next[queue] + before + np.where(kept, 0, run)
            self.queue_next[queue] += int(kept.sum())
        self.cut_end = {}
        for broker in range(len(sc.BROKERS)):
            own = np.flatnonzero(self.r_broker == broker)
            size = self.r_size[own]
            kept_size = np.where(self.r_cut[own], 0, size)
            kept_end = self.log_end[broker] + np.cumsum(kept_size) - kept_size
            cut_size = np.where(self.r_cut[own], size, 0)
            self.r_commit[own] = kept_end + np.where(self.r_cut[own], np.cumsum(cut_size) - cut_size, 0)
            if self.r_cut[own].any():
                self.cut_end[broker] = int(kept_end[self.r_cut[own]][0])
            self.log_end[broker] += int(kept_size.sum())

    def _place(self, records: Any) -> dict[str, Any]:
        """Return the topic, queue and offset columns of records."""
        queue = self.r_queue[records]
        return {
            "topic": self.topic_word[sc.topic_of(queue)],
            "queue_id": sc.queue_id_of(queue),
            "queue_offset": self.r_offset[records],
            "message": self.message[self.r_message[records]],
        }

    # --- events of producers, appends of brokers

    def _produce(self) -> None:
        words, rows = self.words, self.rows
        producer = self.producer_word[sc.producer_of(self.message)]
        topic = self.topic_word[sc.topic_of(self.queue)]

        def client(chosen: Bools, ts: Ints, kind: str, **columns: Any) -> None:
            rows.add(
                ts[chosen], kind, producer[chosen], topic=topic[chosen], message=self.message[chosen],
                client=producer[chosen], **columns,
            )  # fmt: skip

        client(~self._has_outcome(Outcome.PHANTOM), self.sent, "send", attempt=1)
        unknown = words["unknown"]
        client(
            self._has_outcome(Outcome.RETRIED),
            self.sent + self.step // 3,
            "send_fail",
            attempt=1,
            status=unknown,
        )
        client(self._has_outcome(Outcome.RETRIED), self.sent + self.step // 3 + 20, "send", attempt=2)
        client(
            self._has_outcome(Outcome.REFUSED),
            self.sent + 100,
            "send_fail",
            attempt=1,
            status=words["SYSTEM_BUSY"],
        )
        client(self._has_outcome(Outcome.REFUSED), self.sent + 200, "send", attempt=2)
        timeout = self.sent + 300_000
        client(
            self._has_outcome(Outcome.RECOVERED, Outcome.NOT_STORED),
            timeout,
            "send_fail",
            attempt=1,
            status=unknown,
        )
        self._crash_outcomes(client, unknown)
        rows.add(
            self.r_at, "append", self.broker_word[self.r_broker], commit_offset=self.r_commit, attempt=NONE,
            attr_key=words["size"], attr_value=words.of(tuple(map(str, range(180, 400))))[self.r_size - 180],
            **self._place(slice(None)),
        )  # fmt: skip
        self._flushes()
        self._acks(producer)

    def _crash_outcomes(self, client: Any, unknown: int) -> None:
        """Add the events of producers whose broker crashed before it answered."""
        for broker, name in enumerate(_CRASHES if self.has_faults else ()):
            pause = self._pause(name)
            of_broker = sc.broker_of(self.queue) == broker
            failed = of_broker & self._has_outcome(Outcome.CUT_UNACKED, Outcome.CUT_RETRIED)
            retried = of_broker & self._has_outcome(Outcome.CUT_RETRIED)
            client(failed, np.full(self.n, pause + 50_000), "send_fail", attempt=1, status=unknown)
            client(retried, np.full(self.n, pause + 60_000), "send", attempt=2)

    def _flushes(self) -> None:
        for broker, word in enumerate(self.broker_word):
            kept = np.flatnonzero((self.r_broker == broker) & ~self.r_cut)[FLUSH_EVERY - 1 :: FLUSH_EVERY]
            self.rows.add(
                self.r_at[kept] + 100, "flush", word, commit_offset=self.r_commit[kept] + self.r_size[kept],
                attr_key=self.words["file"], attr_value=self.words["log"],
            )  # fmt: skip

    def _acks(self, producer: Ints) -> None:
        outcome = self.outcome[self.r_message]
        silent = [Outcome.RECOVERED, Outcome.PHANTOM, Outcome.CUT_UNACKED]
        lost_answer = np.isin(outcome, [Outcome.RETRIED, Outcome.CUT_RETRIED]) & (self.r_attempt == 1)
        acked = ~np.isin(outcome, silent) & ~lost_answer
        # One attempt stored twice is answered once: a double append is answered with the first record's
        # place.
        acked &= ~((outcome == Outcome.DOUBLE_APPEND) & (self.r_at != self.sent[self.r_message] + 300))
        records = np.flatnonzero(acked)
        # Disk latency: mostly under a millisecond, with a long tail, never as long as a pause.
        wait = np.minimum(self.random.lognormal(6.5, 1.0, len(records)), 100_000).astype(np.int64)
        words = self.words
        is_timeout = outcome[records] == Outcome.FLUSH_TIMEOUT
        self.rows.add(
            self.r_at[records] + 200 + wait, "send_ack", producer[self.r_message[records]],
            client=producer[self.r_message[records]],
            status=np.where(is_timeout, words["FLUSH_DISK_TIMEOUT"], words["SEND_OK"]),
            attempt=self.r_attempt[records] + (outcome[records] == Outcome.REFUSED),
            **self._at_broker(records), **self._place(records),
        )  # fmt: skip

    def _at_broker(self, records: Any) -> dict[str, Any]:
        return {
            "attr_key": self.words["broker"],
            "attr_value": self.broker_word[self.r_broker[records]],
        }

    # --- deliveries to consumers

    def _consume(self, regressions: Ints) -> None:
        outcome = self.outcome[self.r_message]
        behind = int(self.sent[int(self.n * (1 - sc.TAIL_PART))])
        far_behind = int(self.sent[int(self.n * (1 - sc.TAIL_PART / 2))])
        # The group that an anomaly of one group affects.
        victim = self.random.integers(0, len(sc.GROUPS), self.n)[self.r_message]
        for group in range(len(sc.GROUPS)):
            delivered = (
                ~self.r_cut & (outcome != Outcome.LOST) & ~((outcome == Outcome.SKIPPED) & (victim == group))
            )
            if self.is_last:
                delivered &= self.r_at < (far_behind if group == 0 else behind)
            records = np.flatnonzero(delivered)
            at = self.r_at[records] + 2_000 + 3_000 * group
            self._swap(group, records, at, outcome, victim)
            self._deliver(group, records, at)
            self._commits(group, records, at, regressions)
            self._inject_duplicates(group, records, at, outcome, victim)
            if group == sc.ORDERLY:
                self._inject_overlaps(records, at, outcome)
            self._redeliver(group, records, at)
            self._consume_retries(group, records, at, outcome)
        self._record_truth(outcome, victim)

    def _owner(self, group: int, queue: Ints, at: Ints) -> Ints:
        """Return the consumer node that owns the queue at that time.

        A rebalance moves every queue by one owner.
        """
        epoch = self.epochs[group] + ((at > self._pause("rebalance")) if self._rebalances(group) else 0)
        owners: Ints = self.consumer_word[group][(queue + epoch) % sc.CONSUMERS_A_GROUP]
        return owners

    def _rebalances(self, group: int) -> bool:
        return self.has_faults and self.number // sc.FAULTS_EVERY % len(sc.GROUPS) == group

    def _deliver(self, group: int, records: Ints, at: Ints) -> None:
        consumer = self._owner(group, self.r_queue[records], at)
        self.rows.add(
            at, "deliver", consumer, client=consumer, group=int(self.group_word[group]),
            **self._at_broker(records), **self._place(records),
        )  # fmt: skip

    def _swap(self, group: int, records: Ints, at: Ints, outcome: Ints, victim: Ints) -> None:
        """Exchange the times of each reordered record and the next record of its queue."""
        for first in np.flatnonzero((outcome[records] == Outcome.REORDERED) & (victim[records] == group)):
            later = np.flatnonzero(self.r_queue[records[first + 1 :]] == self.r_queue[records[first]])
            second = first + 1 + int(later[0])
            at[first], at[second] = at[second], at[first]

    def _commits(self, group: int, records: Ints, at: Ints, regressions: Ints) -> None:
        queue, offset = self.r_queue[records], self.r_offset[records]
        # Count from the chunk's beginning, so that the number of rows does not depend on where it begins.
        since = offset - np.array(self.begun.queues)[queue]
        due = (since + queue) % COMMIT_EVERY == COMMIT_EVERY - 1
        self._commit(group, queue[due], offset[due] + 1, at[due] + 300)
        for slot in regressions[group :: len(sc.GROUPS)]:
            inside = (self.r_message[records] >= slot) & (self.r_message[records] < slot + sc.SLOT)
            chosen = int(self.random.choice(np.flatnonzero(due & inside & (since >= ROLLBACK))))
            lower = int(offset[chosen]) + 1 - ROLLBACK
            self._commit(group, queue[chosen : chosen + 1], np.array([lower]), at[chosen : chosen + 1] + 310)
            self._expect(
                "offset_regression",
                "DELIV-5",
                "offset-regression",
                int(records[chosen]),
                group=group,
                offset=lower,
                message=False,
            )

    def _commit(self, group: int, queue: Ints, offset: Ints, at: Ints, **columns: Any) -> None:
        self.rows.add(
            at, "offset_commit", self.broker_word[sc.broker_of(queue)], group=int(self.group_word[group]),
            topic=self.topic_word[sc.topic_of(queue)], queue_id=sc.queue_id_of(queue), queue_offset=offset,
            **columns,
        )  # fmt: skip

    def _inject_duplicates(self, group: int, records: Ints, at: Ints, outcome: Ints, victim: Ints) -> None:
        twice = (outcome[records] == Outcome.DUPLICATE) & (victim[records] == group)
        self._deliver(group, records[twice], at[twice] + 10)

    def _inject_overlaps(self, records: Ints, at: Ints, outcome: Ints) -> None:
        """Add ends of calls that make an overlap of three consecutive messages in a queue.

        The first two messages are one call; the third is delivered when only the first has ended. The message
        before them ends at once, which is harmless.
        """
        for index in np.flatnonzero(outcome[records] == Outcome.OVERLAP):
            own = np.flatnonzero(self.r_queue[records] == self.r_queue[records[index]])
            first, second, third = own[np.searchsorted(own, index) - 1 :][:3]
            for before in own[own < first][-1:]:
                self._done(records[before], int(at[before]) + 2)
            self._done(records[first], int(at[second]) + 5)
            self._done(records[second], int(at[third]) + 5)
            self._done(records[third], int(at[third]) + 6)
            self._expect("overlap", "DELIV-13", "orderly-overlap", int(records[third]), group=sc.ORDERLY)

    def _done(self, record: int, at: int) -> None:
        one = slice(record, record + 1)
        consumer = self._owner(sc.ORDERLY, self.r_queue[one], np.array([at]))
        self.rows.add(
            at, "consume_ok", consumer, client=consumer, group=int(self.group_word[sc.ORDERLY]),
            **self._at_broker(one), **self._place(one),
        )  # fmt: skip

    def _redeliver(self, group: int, records: Ints, at: Ints) -> None:
        """Add harmless repeats: records delivered just before a pause are delivered again in it."""
        if not self.has_faults:
            return
        queues = np.arange(sc.QUEUES)
        if self._rebalances(group):
            self._repeat(group, records, at, self._pause("rebalance"), queues)
        victims = queues[(queues + self.epochs[group]) % sc.CONSUMERS_A_GROUP == 0]
        if self._rebalances(group):
            victims = queues[(queues + self.epochs[group] + 1) % sc.CONSUMERS_A_GROUP == 0]
        self._repeat(group, records, at, self._pause("restart"), victims)
        for broker, name in enumerate(_CRASHES):
            self._repeat(
                group, records, at, self._pause(name) + 120_000, queues[sc.broker_of(queues) == broker][:2]
            )
        if group == 1:
            self._repeat(group, records, at, self._pause("reset"), np.array([3]))

    def _repeat(self, group: int, records: Ints, at: Ints, pause: int, queues: Ints) -> None:
        for queue in queues:
            last = np.flatnonzero((self.r_queue[records] == queue) & (at < pause))[-REPEAT:]
            self._deliver(group, records[last], pause + 1_000 + np.arange(len(last)) * 10)

    def _consume_retries(self, group: int, records: Ints, at: Ints, outcome: Ints) -> None:
        """Add harmless failures: the first group fails to consume a message and receives it as a retry."""
        chosen = (
            np.flatnonzero(outcome[records] == Outcome.REDELIVERED)
            if group == 0
            else np.array([], dtype=np.int64)
        )
        words = self.words
        for index in chosen:
            record = records[index]
            consumer = self._owner(group, self.r_queue[record : record + 1], at[index])
            common: dict[str, Any] = {"client": consumer, "group": int(self.group_word[group])}
            self.rows.add(
                at[index] + 20, "consume_fail", consumer, **common, **self._place(slice(record, record + 1))
            )
            broker = int(self.r_broker[record])
            # The retry queue of a broker has one owner, too; here it never changes.
            owner = int(self.consumer_word[group][broker % sc.CONSUMERS_A_GROUP])
            self.rows.add(
                at[index] + 5_000,
                "deliver",
                owner,
                client=owner,
                group=int(self.group_word[group]),
                topic=words[f"%RETRY%{sc.GROUPS[group]}"],
                queue_id=0,
                queue_offset=int(self.retry_next[broker]),
                message=int(self.message[self.r_message[record]]),
                **self._at_broker(slice(record, record + 1)),
            )
            self.retry_next[broker] += 1

    # --- faults: crashes, rebalances, restarts, resets

    def _add_faults(self) -> None:
        words, rows = self.words, self.rows
        harness = words["harness"]
        if self.number == 0:
            for consumer in self.consumer_word[sc.ORDERLY] if self.reports_order else ():
                rows.add(self.begin - 900, "rebalance", int(consumer), client=int(consumer),
                         group=int(self.group_word[sc.ORDERLY]), attr_key=words["orderly"],
                         attr_value=words["true"])  # fmt: skip
            self._subscribe()
            for broker, word in enumerate(self.broker_word):
                rows.add(self.begin - 1000, "recover", int(word), commit_offset=0, **self._mode(broker))
        if not self.has_faults:
            return
        for broker, name in enumerate(_CRASHES):
            self._crash(broker, self._pause(name))
        for group in filter(self._rebalances, range(len(sc.GROUPS))):
            for consumer in self.consumer_word[group]:
                rows.add(self._pause("rebalance"), "rebalance", int(consumer), client=int(consumer),
                         group=int(self.group_word[group]))  # fmt: skip
        for group in range(len(sc.GROUPS)):
            # The harness reports it: a killed process reports nothing itself.
            rows.add(self._pause("restart"), "crash", harness, attr_key=words["node"],
                     attr_value=int(self.consumer_word[group][0]))  # fmt: skip
        before = int(self.queue_next[3] * sc.PAUSES["reset"])
        self._commit(
            1,
            np.array([3]),
            np.array([max(0, before - 2 * COMMIT_EVERY)]),
            np.array([self._pause("reset")]),
            attr_key=words["reset"],
            attr_value=words["true"],
        )

    def _subscribe(self) -> None:
        """Add a subscription of each consumer to all messages of each topic."""
        words = self.words
        everything = {"attr_key": words["expression"], "attr_value": words["*"]}
        for group, consumers in enumerate(self.consumer_word):
            for consumer in map(int, consumers):
                of_consumer = {"client": consumer, "group": int(self.group_word[group])}
                for topic in map(int, self.topic_word):
                    self.rows.add(self.begin - 950, "subscribe", consumer, topic=topic, **of_consumer,
                                  **everything)  # fmt: skip

    def _crash(self, broker: int, at: int) -> None:
        words, word = self.words, int(self.broker_word[broker])
        kind, end = {"attr_key": words["kind"], "attr_value": words["os"]}, self.cut_end[broker]
        self.rows.add(at, "crash", word, **kind)
        self.rows.add(at + 10_000, "truncate", word, commit_offset=end)
        self.rows.add(at + 20_000, "recover", word, commit_offset=end, **self._mode(broker))
        # The newest committed offsets were not persisted: consumers commit again from an older one.
        for group in range(len(sc.GROUPS)):
            delivered = int(np.sum((self.r_queue == broker) & ~self.r_cut & (self.r_at < at)))
            total = int(np.sum((self.r_queue == broker) & ~self.r_cut))
            now = int(self.queue_next[broker]) - total + delivered
            older = max(0, now - 2 * COMMIT_EVERY)
            self._commit(group, np.array([broker]), np.array([older]), np.array([at + 110_000]))

    def _mode(self, broker: int) -> dict[str, int]:
        words = self.words
        return {"attr_key": words["flush_disk_type"], "attr_value": words[sc.FLUSH_MODES[broker]]}

    # --- the ground truth

    def _record_truth(self, outcome: Ints, victim: Ints) -> None:
        for record in map(int, np.flatnonzero(outcome >= Outcome.CUT_ACKED)):
            what, group = Outcome(int(outcome[record])), int(victim[record])
            first = self.r_at[record] == self.sent[self.r_message[record]] + 300
            for each in range(len(sc.GROUPS)):
                if what is Outcome.LOST:
                    self._expect("lost", "DELIV-1", "lost-write", record, group=each)
                elif what is Outcome.DOUBLE_APPEND and first:
                    self._expect(
                        "double_append", "DELIV-3", "duplicate-offset", record, group=each, one=False
                    )
                elif what is Outcome.CUT_ACKED and self.r_broker[record] == 0:
                    self._expect("flush_lost", "DELIV-1", "acked-then-truncated", record, group=each)
            if what is Outcome.CUT_ACKED and self.r_broker[record] == 0:
                self._expect("flush_lost", "FLUSH-1", "acked-then-truncated", record)
            elif what is Outcome.DUPLICATE:
                self._expect("duplicate", "DELIV-3", "duplicate-delivery", record, group=group)
            elif what is Outcome.PHANTOM:
                self._expect("phantom", "DELIV-2", "phantom", record)
            elif what is Outcome.REORDERED:
                self._expect("reordered", "DELIV-4", "nonmonotonic-poll", record, group=group)
            elif what is Outcome.SKIPPED:
                self._expect("skipped", "DELIV-4", "poll-skip", record, group=group)
                self._expect("skipped", "DELIV-1", "lost-write", record, group=group)

    def _expect(
        self, anomaly: str, invariant: str, rule: str, record: int, *, group: int | None = None,
        offset: int | None = None, message: bool = True, one: bool = True,
    ) -> None:  # fmt: skip
        queue = self.r_queue[record]
        number = np.array([self.message[self.r_message[record]]])
        self.truth.append(
            {
                "anomaly": anomaly,
                "invariant": invariant,
                "rule": rule,
                "broker": sc.BROKERS[sc.broker_of(queue)],
                "topic": sc.TOPICS[sc.topic_of(queue)],
                "queue_id": int(sc.queue_id_of(queue)),
                "queue_offset": (int(self.r_offset[record]) if offset is None else offset) if one else None,
                "msg_id": message_ids(number)[0].as_py() if message else None,
                "group": None if group is None else sc.GROUPS[group],
            }
        )
