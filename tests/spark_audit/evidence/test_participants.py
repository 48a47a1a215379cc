"""The participants of a log: the readers of each topic, and the roles that are recorded."""

from mqproof.spark_audit.evidence.participants import Participants, participants_of
from mqproof.spark_audit.passes.profile import profiled_rows
from tests.spark_audit.conftest import LogBuilder, embedded_log


def participants(builder: LogBuilder) -> Participants:
    with embedded_log(builder.rows) as log:
        return participants_of(profiled_rows(log.events), ("broker",))


def test_a_reader_received_a_message_of_the_topic_at_a_place() -> None:
    builder = LogBuilder(subscribed=()).stored("m_0", 0)
    builder.deliver("m_0", 0, "h", "other").deliver("m_0", 0, "g")
    builder.add("deliver", "consumer", msg_id="m_0", topic="u", group="without_offset")
    builder.add("deliver", "consumer", msg_id="m_0", topic="%RETRY%g", queue_id=0, queue_offset=0, group="g")
    found = participants(builder)
    assert found.readers == {"t": ("g", "h")}
    assert found.readers_table.to_pylist() == [
        {"subscribed_topic": "t", "group": "g"}, {"subscribed_topic": "t", "group": "h"}
    ]  # fmt: skip
    assert found.topics == {None, "t", "u", "%RETRY%g"}


def test_acknowledgements_of_a_broker_are_another_role_than_those_of_producers() -> None:
    builder = LogBuilder().stored("m_0", 0)
    assert participants(builder).roles == 3
    builder.add("send_ack", "broker", msg_id="m_0", topic="t", queue_id=0, queue_offset=0, status="SEND_OK")
    assert participants(builder).roles == 4
    assert participants(LogBuilder().send("m_0")).roles == 1
