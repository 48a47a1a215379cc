"""What applications do with RocketMQ, each as one function of a stage.

Most scenarios send and kill the broker, consume and kill it again, and then send and consume the rest. The
first kill could lose messages, the second one positions.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.adapters.apache.java_clients import query_trace
from mqproof.conformance.adapters.clients.driver_client import DriverClient, DriverError, UnsupportedError
from mqproof.conformance.adapters.clients.topic_reader import queue_ends, traced
from mqproof.conformance.client_scenarios.sites import LEVELS_S
from mqproof.conformance.client_scenarios.stage import SECONDS_MAX, Stage, bodies
from mqproof.conformance.client_scenarios.tally import out_of_order

CONSUMER: Final = "c"
_LATE_MS_MAX: Final = 10_000
"""The limit on lateness on a loaded machine; the lateness itself is in the results."""
_REPLY_MS: Final = 5_000
_STREAM: Final = 400
_RECALL_MS: Final = 60_000
"""Longer than two restarts of a broker on a loaded machine."""
_LATE_STREAM: Final = 100
_GAP_MS: Final = 50


def _two_parts(
    stage: Stage, client: DriverClient, send: Callable[[str], list[str]], subscribe: Callable[[], None]
) -> None:
    """Send, kill, consume, kill, send and consume the rest."""
    expected = send("one")
    stage.crash()
    subscribe()
    stage.collect(client, CONSUMER, expected)
    stage.crash()
    expected += send("two")
    stage.collect(client, CONSUMER, expected)
    stage.count(client, CONSUMER, expected)


def sends(stage: Stage) -> None:
    """Waiting, asynchronous and one-way sends; then a stream of sends during both kills."""
    client = stage.client()
    stage.put(client, "first")  # some clients subscribe only to a topic that exists
    client.subscribe(CONSUMER, stage.topic, stage.group)
    expected = ["first"]
    for mode in ("sync", "async", "oneway"):
        for number in range(10):
            stage.put(client, f"{mode}-{number}", mode=mode)
            expected.append(f"{mode}-{number}")
    stage.collect(client, CONSUMER, expected)
    client.burst(stage.topic, "burst-", _STREAM, _GAP_MS)

    def ended() -> dict[str, str]:
        return {event["body"]: event["status"] for event in client.others if event["event"] == "burst"}

    def stored() -> list[str]:
        return [body for body, status in ended().items() if status == "SEND_OK"]

    def overs() -> int:
        return sum(event["event"] == "burst-end" for event in client.others)

    before = 0

    def is_time() -> bool:
        return overs() > 0 or len(stored()) >= before + 10

    for _ in range(2):
        stage.wait([client], is_time)
        stage.crash()
        before = len(stored())
    bursts = 1
    if overs():  # the restart took longer than the stream
        bursts += 1
        client.burst(stage.topic, "late-", _LATE_STREAM, _GAP_MS)
    stage.wait([client], lambda: overs() == bursts)
    if len(stored()) < before + 10:
        stage.problems.append(f"{len(stored()) - before} sends were stored after the second kill")
    unknown = ended().keys() - set(stored())
    expected += stored()
    stage.collect(client, CONSUMER, expected)
    stage.count(client, CONSUMER, expected, unknown)
    stage.notes.append(f"{len(stored())} of {len(ended())} sends of the stream stored")


def batches(stage: Stage) -> None:
    """Several messages in one request."""
    client = stage.client()
    stage.put(client, "first")

    def send(part: str) -> list[str]:
        for attempt in range(5):
            try:
                client.batch(stage.topic, f"{part}-", 20)
                break
            except DriverError:
                if attempt == 4:
                    raise
                time.sleep(1)
        return [f"{part}-{number}" for number in range(20)] + (["first"] if part == "one" else [])

    _two_parts(stage, client, send, lambda: client.subscribe(CONSUMER, stage.topic, stage.group))


def tags(stage: Stage) -> None:
    """A filter by tags, two of them with the same hash code."""
    client = stage.client()

    def send(part: str) -> list[str]:
        for tag in ("TagA", "TagB", "Aa", "BB"):
            for number in range(5):
                stage.put(client, f"{part}-{tag}-{number}", tag=tag)
        return [f"{part}-{tag}-{number}" for tag in ("TagB", "Aa") for number in range(5)]

    subscribe = lambda: client.subscribe(CONSUMER, stage.topic, stage.group, tags="TagB || Aa")  # noqa: E731
    _two_parts(stage, client, send, subscribe)


def sql(stage: Stage) -> None:
    """A filter by an SQL92 expression on properties, some of them absent."""
    client = stage.client()
    expression = "sql:(price BETWEEN 3 AND 6 AND region IN ('eu', 'us')) OR urgent IS NOT NULL"

    def send(part: str) -> list[str]:
        matching = []
        for price in range(10):
            for region in ("eu", "cn"):
                body = f"{part}-{region}-{price}"
                urgent = {"urgent": "yes"} if (price, region) == (9, "cn") else {}
                stage.put(client, body, properties={"price": str(price), "region": region, **urgent})
                if urgent or (3 <= price <= 6 and region == "eu"):
                    matching.append(body)
        stage.put(client, f"{part}-bare")
        return matching

    _two_parts(
        stage, client, send, lambda: client.subscribe(CONSUMER, stage.topic, stage.group, tags=expression)
    )


def delay_levels(stage: Stage) -> None:
    """Levels of delay, with both kills while messages wait."""
    client = stage.client()
    due: dict[str, int] = {}
    for level in (1, 2, 5):
        for number in range(4):
            body = f"level-{level}-{number}"
            due[body] = _now_ms() + LEVELS_S[level - 1] * 1000
            stage.put(client, body, mode=f"level-{level}")
    _deliver_in_time(stage, client, due)


def timers(stage: Stage) -> None:
    """Times in seconds, in milliseconds, and of the clock, with both kills while messages wait."""
    _need_timers(stage)
    client = stage.client()
    due: dict[str, int] = {}
    for number in range(3):
        for mode, delay_ms in (("sec-2", 2000), ("ms-2500", 2500), ("sec-12", 12_000), ("at", 8000)):
            body = f"{mode}-{number}"
            due[body] = _now_ms() + delay_ms
            stage.put(client, body, mode=f"at-{due[body]}" if mode == "at" else mode)
    _deliver_in_time(stage, client, due)


def _deliver_in_time(stage: Stage, client: DriverClient, due: dict[str, int]) -> None:
    client.subscribe(CONSUMER, stage.topic, stage.group)
    stage.crash()
    stage.collect(client, CONSUMER, sorted(due, key=due.__getitem__)[:4])
    stage.crash()
    up_ms = _now_ms()
    stage.collect(client, CONSUMER, list(due))
    stage.count(client, CONSUMER, list(due))
    # The time at which the broker made the message visible. Clients may need half a minute to connect again.
    visible = {event["body"]: event["storeTimestamp"] for event in reversed(client.of(CONSUMER))}
    late_ms = {body: at - due[body] for body, at in visible.items() if body in due}
    if early := [-ms for ms in late_ms.values() if ms < 0]:
        stage.problems.append(f"{len(early)} messages early, by up to {max(early)} ms")
    # A broker that is down when a message is due delivers it after its restart.
    late = max((visible[body] - max(due[body], up_ms) for body in late_ms), default=0)
    stage.notes.append(f"at most {max(late, 0)} ms late")
    if late > _LATE_MS_MAX:
        stage.problems.append(f"a message is {late} ms late")


def recalls(stage: Stage) -> None:
    """Messages that are recalled while they wait, before and after a kill."""
    _need_timers(stage)
    client = stage.client()
    handles = {}
    sent_ms = _now_ms()
    for number in range(6):
        sent = stage.put(client, f"timed-{number}", mode=f"ms-{_RECALL_MS}")
        handles[f"timed-{number}"] = sent.get("handle")
    if None in handles.values():
        raise UnsupportedError("this client gets no handle for a recall")
    stage.crash()
    client.subscribe(CONSUMER, stage.topic, stage.group)
    for number, body in enumerate(handles):
        if number % 2 and (refused := client.recall(stage.topic, str(handles[body]))) is not None:
            after_s = (_now_ms() - sent_ms) / 1000
            stage.problems.append(f"recall of {body} refused after {after_s:.0f} s: {refused[:80]}")
        if number == 3:
            stage.crash()
    expected = [body for number, body in enumerate(handles) if not number % 2]
    stage.collect(client, CONSUMER, expected)
    stage.count(client, CONSUMER, expected)


def retries(stage: Stage) -> None:
    """Failed messages: delivered again, and dead letters after the last redelivery."""
    client = stage.client()
    for number in range(4):
        for tag in ("good", "fail", "dead"):
            stage.put(client, f"{tag}-{number}", tag=tag)
    once = [f"{tag}-{number}" for number in range(4) for tag in ("good", "fail", "dead")]
    again = [f"{tag}-{number}" for number in range(4) for tag in ("fail", "dead")]
    last = [f"dead-{number}" for number in range(4)]
    client.subscribe(CONSUMER, stage.topic, stage.group, redeliveries_max=2)
    stage.collect(client, CONSUMER, once)
    stage.crash()
    stage.collect(client, CONSUMER, once + again)
    stage.crash()
    stage.collect(client, CONSUMER, once + again + last)
    dead = f"%DLQ%{stage.group}"
    stage.wait([client], lambda: _ends(stage, dead) >= len(last), 30)
    stage.count(client, CONSUMER, once + again + last)
    # A delivery that the broker repeats after a kill may end as one more dead letter.
    found = _ends(stage, dead)
    (stage.problems if found < len(last) else stage.notes).append(
        f"{found} dead letters of {len(last)} messages"
    )


def _ends(stage: Stage, topic: str) -> int:
    return queue_ends(stage.site.name_server, topic)


def orderly(stage: Stage) -> None:
    """Orderly consumption: the messages of a key stay in order, also when one of them fails."""
    client = stage.client()

    def send(part: str) -> list[str]:
        expected = []
        start = 0 if part == "one" else 10
        for number in range(start, start + 10):
            for key in ("k0", "k1", "k2"):
                fails = number % 5 == 3
                stage.put(client, f"{key}-{number}", mode=f"key-{key}", tag="fail" if fails else "good")
                expected += [f"{key}-{number}"] * (2 if fails else 1)
        return expected

    _two_parts(
        stage, client, send, lambda: client.subscribe(CONSUMER, stage.topic, stage.group, mode="orderly")
    )
    if wrong := out_of_order(bodies(client, CONSUMER)):
        stage.problems.append(f"{len(wrong)} messages out of order: {', '.join(wrong[:5])}")


def broadcast(stage: Stage) -> None:
    """Broadcast: each of two members receives every message."""
    client = stage.client()
    members = ("c1", "c2")
    expected = [f"one-{number}" for number in range(10)]
    for body in expected:
        stage.put(client, body)
    for member in members:
        client.subscribe(member, stage.topic, stage.group, mode="broadcast")
        stage.collect(client, member, expected)
    stage.crash()
    for part in ("two", "three"):
        more = [f"{part}-{number}" for number in range(10)]
        for body in more:
            stage.put(client, body)
        expected += more
        for member in members:
            stage.collect(client, member, expected)
        if part == "two":
            stage.crash()
    for member in members:
        stage.count(client, member, expected)


def transactions(stage: Stage) -> None:
    """Transactions: commit, rollback, unknown until the check, and a producer killed in between."""
    client = stage.client()
    stage.put(client, "first", tag="good")
    client.transactions(stage.group + "-producer")
    for number in range(4):
        for tag in ("commit", "rollback", "unknown-commit", "unknown-rollback"):
            client.transact(stage.topic, f"{tag}-{number}", tag)
    killed = stage.client("killed")
    killed.transactions(stage.group + "-producer")
    hanging = [f"{tag}-{number}" for number in range(2) for tag in ("hang-commit", "hang-rollback")]
    for body in hanging:
        killed.transact(stage.topic, body, body.rpartition("-")[0])
    stage.wait([killed], lambda: set(hanging) <= _seen(killed, "executed"))
    killed.kill()
    stage.crash()
    client.subscribe(CONSUMER, stage.topic, stage.group)
    committed = [f"commit-{number}" for number in range(4)]
    stage.collect(client, CONSUMER, ["first", *committed])
    stage.crash()
    expected = ["first", *committed, *(f"unknown-commit-{number}" for number in range(4))]
    expected += [f"hang-commit-{number}" for number in range(2)]
    stage.collect(client, CONSUMER, expected)
    to_check = {f"unknown-{end}-{number}" for end in ("commit", "rollback") for number in range(4)}
    stage.wait([client], lambda: to_check <= _seen(client, "checked"), 60)
    stage.count(client, CONSUMER, expected)
    again = sorted(_seen(client, "checked") - to_check - set(hanging))
    if wrong := [body for body in again if body.startswith("commit")]:
        stage.problems.append(f"checked although it was committed: {', '.join(wrong)}")
    if again:  # allowed after a kill: a rollback leaves nothing else behind
        stage.notes.append(f"{len(again)} ended transactions checked")
    if absent := to_check - _seen(client, "checked"):
        stage.notes.append(f"{len(absent)} unknown transactions not checked by the living producer")


def _seen(client: DriverClient, event: str) -> set[str]:
    """Return the bodies of the messages with that event."""
    return {str(each["body"]) for each in client.others if each["event"] == event}


def traces(stage: Stage) -> None:
    """Message trace: one record for each send, and two for each call of a listener."""
    client = stage.client(traces=True)
    expected = [f"traced-{number}" for number in range(6)]
    ids = [stage.put(client, body)["msgId"] for body in expected]
    client.subscribe(CONSUMER, stage.topic, stage.group)
    stage.collect(client, CONSUMER, expected)
    stage.count(client, CONSUMER, expected)
    client.close(CONSUMER)  # sends the rest of its records
    complete = {"Pub": 1, "SubBefore": 1, "SubAfter": 1}

    def incomplete() -> dict[str, dict[str, int]]:
        found = traced(stage.site.name_server)
        seen = {message_id: dict(found.get(message_id, {})) for message_id in ids}
        return {message_id: counts for message_id, counts in seen.items() if counts != complete}

    if not stage.wait([client], lambda: not incomplete(), 60):
        wrong = incomplete()
        stage.problems.append(
            f"{len(wrong)} of {len(ids)} messages with wrong records: {next(iter(wrong.values()), {})}"
        )
    shown = query_trace(stage.folder, stage.site.name_server, ids[0])
    if not {"Pub", "success", "driver_producer"} <= set(shown.split()):
        stage.problems.append(f"mqadmin queryMsgTraceById shows {shown.strip()[:900]!r}")


def requests(stage: Stage) -> None:
    """Requests and replies, again after a kill of the broker."""
    answering, asking = stage.client(), stage.client("asking")
    stage.put(answering, "first")
    answering.answer("answering", stage.topic, stage.group)
    right = []
    silent = 0
    for part in ("one", "two"):
        deadline = time.monotonic() + SECONDS_MAX
        # Both clients must have connected again, and the first request may be older than the group.
        while asking.request(stage.topic, f"{part}-ready", _REPLY_MS) is None and time.monotonic() < deadline:
            silent += 1
        for number in range(5):
            body = f"{part}-{number}"
            reply = asking.request(stage.topic, body, _REPLY_MS * 4)
            right.append(body if reply == f"re:{body}" else f"wrong {reply}")
        if part == "one":
            stage.crash()
    expected = [f"{part}-{number}" for part in ("one", "two") for number in range(5)]
    stage.add(expected, right)
    if silent:
        stage.notes.append(f"{silent} requests without a reply before the clients were connected")
    if wrong := [body for body in right if body not in expected]:
        stage.problems.append(f"{len(wrong)} wrong replies: {wrong[0]}")


def pulls(stage: Stage) -> None:
    """A pull consumer reads each queue from its start."""
    client = stage.client()
    expected = [f"one-{number}" for number in range(20)]
    for body in expected:
        stage.put(client, body)
    stage.crash()
    client.pull(stage.topic, stage.group)
    stage.crash()
    stage.add(expected, bodies(client, "pull"))


def polls(stage: Stage) -> None:
    """A lite pull consumer."""
    client = stage.client()

    def send(part: str) -> list[str]:
        expected = [f"{part}-{number}" for number in range(12)]
        for body in expected:
            stage.put(client, body)
        return expected

    _two_parts(stage, client, send, lambda: client.subscribe(CONSUMER, stage.topic, stage.group, mode="lite"))


def _need_timers(stage: Stage) -> None:
    if not stage.site.has_timers:
        raise UnsupportedError("this release of the broker has no timers")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario and its place in the results."""

    name: str
    title: str
    play: Callable[[Stage], None]


SCENARIOS: Final = (
    Scenario("sends", "sends: sync, async, one-way, and a stream", sends),
    Scenario("batches", "batches", batches),
    Scenario("tags", "tag filter", tags),
    Scenario("sql", "SQL92 filter", sql),
    Scenario("delay-levels", "delay levels", delay_levels),
    Scenario("timers", "timers: seconds, milliseconds, time", timers),
    Scenario("recalls", "recall of timed messages", recalls),
    Scenario("retries", "redelivery and dead letters", retries),
    Scenario("orderly", "orderly consumption", orderly),
    Scenario("broadcast", "broadcast", broadcast),
    Scenario("transactions", "transactions", transactions),
    Scenario("traces", "message trace", traces),
    Scenario("requests", "request and reply", requests),
    Scenario("pulls", "pull consumer", pulls),
    Scenario("polls", "lite pull consumer", polls),
)
