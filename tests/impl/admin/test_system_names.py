"""Tests which topics and groups belong to RocketMQ itself."""

import pytest

from mqproof.impl.admin.system_names import TopicKind, is_system_group, topic_kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Orders", TopicKind.NORMAL),
        ("%RETRY%billing", TopicKind.RETRY),
        ("%DLQ%billing", TopicKind.DEAD_LETTER),
        ("SCHEDULE_TOPIC_XXXX", TopicKind.SYSTEM),
        ("RMQ_SYS_TRACE_TOPIC", TopicKind.SYSTEM),
        ("rmq_sys_REVIVE_LOG_c", TopicKind.SYSTEM),
        ("c", TopicKind.SYSTEM),
        ("c_REPLY_TOPIC", TopicKind.SYSTEM),
        ("broker-a", TopicKind.SYSTEM),
    ],
)
def test_kinds_of_topics(name: str, kind: TopicKind) -> None:
    assert topic_kind(name, frozenset({"c", "broker-a"})) is kind


@pytest.mark.parametrize(
    ("name", "is_system"), [("billing", False), ("TOOLS_CONSUMER", True), ("CID_RMQ_SYS_TRANS", True)]
)
def test_groups(name: str, is_system: bool) -> None:
    assert is_system_group(name) is is_system
