"""The rules about the store, on evidence that no broker of a test produces easily."""

from dataclasses import replace

from mqproof.impl.broker.half_messages import DISCARD_TOPIC, HALF_TOPIC, OPERATION_TOPIC
from mqproof.impl.broker.timed_messages import TIMER_TOPIC
from mqproof.impl.diagnosis import history
from mqproof.impl.diagnosis.evidence import Copy, Evidence, Group, Queue, QueueState
from mqproof.impl.diagnosis.group_rules import diagnose
from mqproof.impl.diagnosis.history import History, HistoryBuilder
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.spec.events import Event, Kind

NOW_MS = 1_795_574_419_000
QUEUE = Queue("Orders", "broker-a", 0)


def seen(*events: Event) -> History:
    builder = HistoryBuilder("m")
    for event in events:
        builder.add(event)
    return builder.build()


def event(kind: Kind, second: int = 0, **columns: object) -> Event:
    attrs = {"broker": "broker-a"} if kind in (Kind.SEND, Kind.SEND_ACK, Kind.DELIVER) else {}
    values = {"msg_id": "m", "topic": "Orders", "queue_id": 0, **columns}
    return Event((NOW_MS // 1000 + second) * 1_000_000, second, "n", kind, attrs=attrs, **values)  # type: ignore[arg-type]


ACK = event(Kind.SEND_ACK, 1, queue_offset=5, status="SEND_OK")
READ = Evidence("m", NOW_MS, "Orders", True, cluster=True)


def causes(evidence: Evidence, group: str | None = None) -> list[str]:
    return [answer.cause.name for answer in diagnose(evidence, group)]


def copy(topic: str, queue: int = 0, offset: int = 5, stored_ms: int = NOW_MS, **properties: str) -> Copy:
    return Copy(Queue(topic, "broker-a", queue), offset, 0, stored_ms, properties)


def test_the_internal_topics_are_those_of_the_broker() -> None:
    ours = (SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, OPERATION_TOPIC, DISCARD_TOPIC)
    assert all(history.is_internal(each) for each in ours)
    assert not history.is_internal("Orders")


def test_a_message_that_waits_beyond_its_time_is_overdue() -> None:
    waits = copy(SCHEDULE_TOPIC, 2, REAL_TOPIC="Orders")  # level 3, 10 s
    evidence = replace(READ, copies=(waits,))
    assert causes(evidence) == ["waiting_for_its_time"]
    assert causes(replace(evidence, now_ms=NOW_MS + 39_000)) == ["waiting_for_its_time"]
    assert causes(replace(evidence, now_ms=NOW_MS + 41_000)) == ["overdue"]
    timed = copy(TIMER_TOPIC, REAL_TOPIC="Orders", TIMER_OUT_MS=str(NOW_MS))
    assert causes(replace(READ, copies=(timed,), now_ms=NOW_MS + 40_000)) == ["overdue"]


def test_a_confirmed_message_that_its_queue_does_not_have_is_lost() -> None:
    evidence = replace(READ, history=seen(ACK), queues={QUEUE: QueueState(0, 9)})
    assert causes(evidence) == ["lost_from_store"]


def test_a_confirmed_message_is_not_called_lost_while_a_part_cannot_be_read() -> None:
    evidence = replace(READ, history=seen(ACK), queues={QUEUE: QueueState(0, 9)}, missing=("no index",))
    assert causes(evidence, "g") == ["incomplete"]
    silent = replace(READ, history=seen(ACK), silent_brokers=("broker-a",))
    assert causes(silent) == ["broker_unreachable"]


def test_a_message_that_was_received_is_not_called_lost() -> None:
    received = event(Kind.DELIVER, 2, queue_offset=5, group="g")
    evidence = replace(READ, history=seen(ACK, received), queues={QUEUE: QueueState(0, 5)})
    assert "lost_from_store" not in causes(evidence)


def test_a_message_that_its_queue_has_deleted_as_too_old_is_lost_only_for_a_group_behind_it() -> None:
    evidence = replace(READ, history=seen(ACK), queues={QUEUE: QueueState(6, 9)})
    behind, beyond = Group("g", offsets={QUEUE: 5}), Group("g", offsets={QUEUE: 6})
    assert causes(replace(evidence, groups={"g": behind})) == ["deleted_before_consumption"]
    assert causes(replace(evidence, groups={"g": beyond})) == ["passed"]


def test_the_brokers_own_log_shows_a_loss_without_a_cluster() -> None:
    stored = event(Kind.APPEND, 1, queue_offset=5, commit_offset=100)
    cut = event(Kind.TRUNCATE, 2, msg_id=None, commit_offset=100)
    assert causes(Evidence("m", NOW_MS, "Orders", history=seen(stored, ACK, cut))) == ["lost_from_store"]
    kept = event(Kind.TRUNCATE, 2, msg_id=None, commit_offset=101)
    assert causes(Evidence("m", NOW_MS, "Orders", history=seen(stored, ACK, kept))) == ["no_group"]


def test_a_refusal_is_final_only_if_every_attempt_was_refused() -> None:
    refused = event(Kind.SEND_FAIL, 2, status="NO_PERMISSION", attempt=1)
    unclear = event(Kind.SEND_FAIL, 1, status="unknown", attempt=1)
    later = event(Kind.SEND_FAIL, 2, status="NO_PERMISSION", attempt=2)
    assert causes(Evidence("m", NOW_MS, "Orders", history=seen(refused))) == ["send_refused"]
    assert causes(Evidence("m", NOW_MS, "Orders", history=seen(unclear, refused))) != ["send_refused"]
    assert causes(Evidence("m", NOW_MS, "Orders", history=seen(later))) != ["send_refused"]


def test_a_send_without_an_answer_is_not_called_never_stored_without_a_complete_search() -> None:
    sent = seen(event(Kind.SEND, 1, attempt=1))
    assert causes(replace(READ, history=sent)) == ["send_not_confirmed"]
    assert causes(replace(READ, history=sent, missing=("no index",))) != ["send_not_confirmed"]
    assert causes(Evidence("m", NOW_MS, "Orders", history=sent)) != ["send_not_confirmed"]


def test_a_message_that_is_not_shown_to_be_stored_is_not_called_stored_or_passed() -> None:
    sent = Evidence("m", NOW_MS, "Orders", history=seen(event(Kind.SEND, 1, attempt=1)))
    assert causes(sent) == causes(sent, "g") == ["not_found"]
    stored = replace(sent, history=seen(event(Kind.SEND, 1, attempt=1), ACK))
    assert (causes(stored), causes(stored, "g")) == (["no_group"], ["incomplete"])
    commit = event(Kind.OFFSET_COMMIT, 9, msg_id=None, queue_offset=6, group="g")
    named = Event(
        commit.ts, 9, "broker-a", commit.kind, topic="Orders", queue_id=0, queue_offset=6, group="g"
    )
    assert causes(replace(sent, history=seen(ACK, named)), "g") == ["passed"]


def test_a_message_that_no_source_has_is_unknown_and_a_silent_broker_is_named() -> None:
    assert causes(READ) == ["not_found"]
    (answer,) = diagnose(replace(READ, silent_brokers=("broker-b",)))
    assert (answer.cause.name, answer.evidence) == ("incomplete", ("broker broker-b does not answer",))


def test_the_end_of_a_half_message_that_cannot_be_read_is_unknown() -> None:
    half = copy(HALF_TOPIC, REAL_TOPIC="Orders")
    assert causes(replace(READ, copies=(half,))) == ["incomplete"]
    assert causes(replace(READ, copies=(half,), half_is_done=False)) == ["transaction_open"]
    assert causes(replace(READ, copies=(half,), half_is_done=True)) == ["rolled_back"]
    discarded = copy(DISCARD_TOPIC, REAL_TOPIC="Orders")
    assert causes(replace(READ, copies=(half, discarded), half_is_done=True)) == ["transaction_discarded"]


def test_a_topic_without_a_route_was_deleted_if_a_broker_still_has_the_record() -> None:
    evidence = replace(READ, topic_exists=False, copies=(copy("Orders"),))
    assert causes(evidence) == ["topic_deleted"]
    assert causes(replace(evidence, silent_brokers=("broker-b",)), "g") != ["topic_deleted"]
    assert causes(replace(READ, topic_exists=False)) == ["topic_missing"]
    received = seen(event(Kind.DELIVER, 2, queue_offset=5, group="g"), event(Kind.CONSUME_OK, 3, group="g"))
    of_two = replace(evidence, history=received, groups={"g": Group("g"), "h": Group("h")})
    assert causes(of_two) == ["consumed", "topic_deleted"]
