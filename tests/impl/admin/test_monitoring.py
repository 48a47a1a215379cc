"""Tests what is reported about groups, from brokers with scripted answers."""

from mqproof.impl.admin import monitoring
from mqproof.impl.admin.monitoring import Finding
from mqproof.impl.admin.times import now_ms
from mqproof.impl.remoting import bodies, java_json
from mqproof.impl.remoting.bodies import (
    Connection,
    ConsumerConnection,
    ConsumeStats,
    QueueProgress,
    RunningInfo,
    Subscription,
    TopicPace,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.java_json import ObjectKey
from tests.impl.admin.site import Answer, Site, play, refusal


def progress(*queues: tuple[str, int, int, int]) -> Answer:
    """Return the answer with a topic, both offsets and the last store time for each queue."""
    table = {
        ObjectKey(bodies.MessageQueue("b-a", number, topic)): QueueProgress(end, at, last)
        for number, (topic, end, at, last) in enumerate(queues)
    }
    return (0, {}, java_json.write(ConsumeStats(1.0, table)))


NO_MEMBER = refusal(ResponseCode.CONSUMER_NOT_ONLINE)


def found(answers: dict[RequestCode, Answer]) -> list[Finding]:
    async def scenario(site: Site) -> list[Finding]:
        await site.add_broker("b-a", answers)
        count, findings = await monitoring.findings(site.admin)
        assert count == 1
        return findings

    return play(scenario)


def test_waiting_messages_are_reported_by_topic_with_their_age() -> None:
    minute_ago = now_ms() - 60_000
    queues = (("T", 9, 7, minute_ago), ("T", 9, 8, now_ms()), ("U", 5, 5, 1), ("V", 4, 0, 0))
    behind, never = found(
        {
            RequestCode.GET_CONSUME_STATS: progress(*queues),
            RequestCode.GET_CONSUMER_CONNECTION_LIST: NO_MEMBER,
        }
    )
    assert (behind.group, behind.topic) == ("G", "T")
    assert behind.text.startswith("3 messages behind, the last consumed one is 6")
    assert behind.text.endswith(" s old, no member is connected")
    assert never == Finding("G", "V", "4 messages behind, no member is connected")


def test_failed_messages_of_a_member_are_reported() -> None:
    info = RunningInfo(status_table={"T": TopicPace(consume_failed_msgs=3), "U": TopicPace()})
    member = ConsumerConnection([Connection("10.0.0.9:1", "c1", "JAVA", 1)], "", "", "", {})
    assert found(
        {
            RequestCode.GET_CONSUME_STATS: progress(("T", 7, 7, 1)),
            RequestCode.GET_CONSUMER_CONNECTION_LIST: (0, {}, java_json.write(member)),
            RequestCode.GET_CONSUMER_RUNNING_INFO: (0, {}, java_json.write(info)),
        }
    ) == [Finding("G", "T", "3 messages failed at c1")]


def test_members_with_different_subscriptions_are_reported() -> None:
    def of(*topics: tuple[str, str | None]) -> RunningInfo:
        return RunningInfo(subscription_set=[Subscription(topic, tags) for topic, tags in topics])

    same = {"c1": of(("T", "*"), ("U", "a")), "c2": of(("U", "a"), ("T", None))}
    assert monitoring._of_members("G", same) == []
    (one,) = monitoring._of_members("G", {**same, "c3": of(("T", "b"), ("U", "a"))})
    assert one == Finding("G", None, "the members c1, c2, c3 have different subscriptions")


def test_a_group_that_cannot_be_examined_is_reported_and_a_good_one_is_not() -> None:
    (one,) = found({RequestCode.GET_CONSUMER_CONNECTION_LIST: refusal(ResponseCode.NO_PERMISSION)})
    assert (one.group, one.topic) == ("G", None)
    assert "NO_PERMISSION" in one.text
    assert (
        found(
            {
                RequestCode.GET_CONSUME_STATS: progress(("T", 7, 7, 1)),
                RequestCode.GET_CONSUMER_CONNECTION_LIST: NO_MEMBER,
            }
        )
        == []
    )
