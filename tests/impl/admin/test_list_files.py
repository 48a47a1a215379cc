"""Tests files with lists of topics and groups, and their mistakes."""

import json
from pathlib import Path

import pytest

from mqproof.impl.admin.list_files import read_groups, read_topics
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig

TOPIC = {"topicName": "T", "readQueueNums": 2, "perm": 4}


def written(folder: Path, content: object) -> str:
    path = folder / "list.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("content", [[TOPIC], {"exportTime": 1, "topicConfigTable": {"T": TOPIC}}])
def test_a_list_and_an_exported_table_are_topics(tmp_path: Path, content: object) -> None:
    assert read_topics(written(tmp_path, content)) == [TopicConfig("T", read_queue_nums=2, perm=4)]


def test_groups_have_their_members_of_5x(tmp_path: Path) -> None:
    group = {"groupName": "G", "retryMaxTimes": 3, "groupRetryPolicy": {"type": "CUSTOMIZED"}}
    expected = SubscriptionGroup(group_name="G", retry_max_times=3, group_retry_policy={"type": "CUSTOMIZED"})
    assert read_groups(written(tmp_path, [group])) == [expected]
    assert read_groups(written(tmp_path, {"subscriptionGroupTable": {"G": group}})) == [expected]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ([], "a list of 1 to 10000 objects expected"),
        (3, "a list of 1 to 10000 objects expected"),
        ([TOPIC] * 10_001, "a list of 1 to 10000 objects expected"),
        ({"subscriptionGroupTable": {}}, "a list expected, or an object with topicConfigTable"),
        ([TOPIC, {"perm": 6}], "object 2 has no topicName"),
        ([TOPIC, 3], "object 2 has no topicName"),
        ([{**TOPIC, "readQueueNum": 2}], "object 1 has the unknown member readQueueNum"),
        ([{**TOPIC, "perm": "six"}], "object 1: Expected `int`"),
        (" " * (4 << 20) + "[]", "has more than 4194304 bytes"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, content: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_topics(written(tmp_path, content))


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_topics(str(tmp_path / "absent"))
