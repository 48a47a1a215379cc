"""Tests one script of administration, with mqadmin on our servers and `mqproof admin` on Apache's servers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache.java_clients import mqadmin
from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.conformance.hosts.processes import Cluster
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import Sent
from mqproof.impl.runtime.network import Address

pytestmark = pytest.mark.apache


TRIES_MAX = 4

ONE_QUEUE = (
    ("resetOffsetByTime -g {group} -t {topic} -s 0 -b {broker} -q 1 -o 1", "offset"),
    ("consumerProgress -g {group}", r"{topic} +{name} +1 +2 +1 +1 "),
    ("consumerProgress -g {group} -t {topic} -c DefaultCluster", r"{topic} +{name} +1 +2 +1 +1 "),
    ("topicStatus -t {topic} -c DefaultCluster", r"{name} +0 +0 +2 "),
    ("topicRoute -t {topic} -l", "{broker}"),
    ("clusterList -c DefaultCluster", r"DefaultCluster +{name} +0 +{broker}"),
    ('updateSubGroup -b {broker} -g {group} -o true -p {{"type":"CUSTOMIZED"}}', "success|{group}"),
)
"""Steps that mqadmin of 4.9 does not support. They follow the resets in AFTER."""

BEFORE = (
    ("updateTopic -c DefaultCluster -t {topic} -r 4 -w 4", "success|{topic}"),
    ("topicRoute -t {topic}", "{broker}"),
    ("topicList", "{topic}"),
    ("clusterList", r"DefaultCluster +{name} +0 +{broker}"),
    ("updateSubGroup -b {broker} -g {group} -r 3", "success|{group}"),
    ("updateBrokerConfig -b {broker} -k maxMessageSize -v 4194305", "success|4194305"),
    ("getBrokerConfig -b {broker}", r"maxMessageSize *=? *4194305"),
)
"""Pairs: the arguments of a command, and a regular expression that its output must match."""

AFTER = (
    ("topicStatus -t {topic}", r"{name} +0 +0 +2 "),
    ("printMsg -t {topic}", "{unique_key}"),
    ("queryMsgById -i {offset_id}{id_needs}", "{topic}"),
    ("queryMsgByKey -t {topic} -k key-3", "{unique_key}"),
    ("consumerProgress -g {group}", r"{topic} +{name} +0 +2 +2 +0 "),
    ("resetOffsetByTime -g {group} -t {topic} -s 0", "{name}"),
    ("consumerProgress -g {group}", r"{topic} +{name} +0 +2 +0 +2 "),
    ("brokerStatus -b {broker}", r"msgPutTotalTodayNow *:? *\d"),
    ("queryMsgById -i {offset_id}{id_needs} -s true", "SEND_OK"),
    ("updateTopicPerm -t {topic} -p 4 -b {broker}", "success|{topic}"),
    ("topicRoute -t {topic}", r"perm\W+4|R-|4 +4 +4"),
    ("wipeWritePerm -b {name}", r"{name}"),
    ("addWritePerm -b {name}", r"{name}"),
    ("deleteSubGroup -b {broker} -g {group}", "success|{group}"),
    ("deleteTopic -c DefaultCluster -t {topic}", "success|{topic}"),
)


OF_OURS = (
    ("checkMsgSendRT -t {topic} -a 4 -s 10", "SEND_OK[^!]*ms on average"),
    ("sendMsgStatus -b {name} -c 2", "SEND_OK"),
    ("consumeMessage -t {topic} -b {name} -i 0 -o 0 -c 1", "to be found"),
    ("updateOrderConf -t {topic} -m put -v {name}:4", "{topic}: {name}:4"),
    ("updateOrderConf -t {topic} -m get", "{topic}: {name}:4"),
    ("updateOrderConf -t {topic} -m delete", "the order is deleted"),
    ("exportMetadata -c DefaultCluster -f {folder}", "metadata.json is written"),
    ("exportConfigs -c DefaultCluster -f {folder}", "configs.json is written"),
)
"""Steps of `mqproof admin` alone: test_mqadmin.py has those of mqadmin."""

OF_OURS_SINCE_5 = (
    ("updateTopicList -c DefaultCluster -f {folder}/metadata.json", "topics created or changed at {broker}"),
    ("updateSubGroupList -b {broker} -f {folder}/metadata.json", "groups created or changed at {broker}"),
    ("setConsumeMode -c DefaultCluster -g {group} -t {topic} -m PULL", "receives topic {topic} by PULL"),
)


def test_our_admin_has_the_other_commands_of_mqadmin(
    release: str, apache: tuple[ApacheServer, ApacheServer], tmp_path: Path
) -> None:
    names, broker = apache
    facts = {
        "topic": "Other_commands",
        "group": "Others",
        "broker": str(broker.address),
        "name": "apache-a",
        "folder": str(tmp_path),
    }
    admin = lambda *words: our_admin(names.address, *words)  # noqa: E731
    problems = [run_step(admin, step, facts) for step in (BEFORE[0], BEFORE[4])]
    send_and_commit(names.address, facts["topic"], facts["group"])
    steps = (*OF_OURS, *(OF_OURS_SINCE_5 if release.startswith("5.") else ()))
    problems += [run_step(admin, step, facts) for step in steps]
    assert not any(problems), "\n".join(filter(None, problems))
    exported = json.loads((tmp_path / "metadata.json").read_text(encoding="utf-8"))
    assert facts["topic"] in exported["topicConfigTable"]
    assert facts["group"] in exported["subscriptionGroupTable"]
    assert "apache-a" not in exported["topicConfigTable"]
    configs = json.loads((tmp_path / "configs.json").read_text(encoding="utf-8"))
    assert configs["brokerConfigs"]["apache-a"]["brokerName"] == "apache-a"


def test_mqadmin_administers_our_servers(release: str, ours: Cluster, tmp_path: Path) -> None:
    names = Address.parse(ours.name_server)
    broker = Address("127.0.0.1", ours.broker_port)
    facts = {
        "topic": f"Administered_{release.replace('.', '_')}",
        "group": f"Administrators_{release.replace('.', '_')}",
        "broker": str(broker),
        "name": "broker-a",
    }
    # 5.x requires the topic, 4.9 does not accept it.
    facts["id_needs"] = "" if release.startswith("4.") else f" -t {facts['topic']}"
    run_script(
        lambda *words: mqadmin(release, tmp_path, names, *words),
        names,
        facts,
        since_5=release.startswith("5."),
    )


def test_our_admin_administers_apaches_servers(apache: tuple[ApacheServer, ApacheServer]) -> None:
    names, broker = apache
    facts = {
        "topic": "Administered",
        "group": "Administrators",
        "broker": str(broker.address),
        "name": "apache-a",
        "id_needs": "",
    }
    run_script(lambda *words: our_admin(names.address, *words), names.address, facts)


def our_admin(names: Address, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mqproof", "admin", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "NAMESRV_ADDR": str(names), "COLUMNS": "200"},
        check=False,
    )
    return done.stdout + done.stderr


def run_script(
    admin: Callable[..., str], names: Address, facts: dict[str, str], *, since_5: bool = True
) -> None:
    problems = [run_step(admin, step, facts) for step in BEFORE]
    facts |= send_and_commit(names, facts["topic"], facts["group"])
    last_reset = max(number for number, (command, _) in enumerate(AFTER) if command.startswith("consumerP"))
    steps = (*AFTER[: last_reset + 1], *(ONE_QUEUE if since_5 else ()), *AFTER[last_reset + 1 :])
    problems += [run_step(admin, step, facts) for step in steps]
    assert not any(problems), "\n".join(filter(None, problems))


def send_and_commit(names: Address, topic: str, group: str) -> dict[str, str]:
    """Send two messages to each queue and consume them. Returns how to find the one with key-3."""
    facts = {}
    with BlockingClient(str(names), consumer_group=group) as client:
        for queue in client.queues(topic):
            for number in (0, 1):
                key = f"key-{2 * queue.queue_id + number}"
                outcome = client.send(new_message(topic, b"to be found", keys=[key]), queue)
                assert isinstance(outcome, Sent), outcome
                if key == "key-3":
                    facts = {"unique_key": outcome.message_id, "offset_id": outcome.offset_message_id}
            client.commit(queue, 2)
    return facts


def run_step(admin: Callable[..., str], step: tuple[str, str], facts: dict[str, str]) -> str:
    """Return an error, or nothing.

    Tools wait seconds for an answer: a busy machine may need another attempt.
    """
    command, expected = (text.format(**facts) for text in step)
    for _ in range(TRIES_MAX):
        if re.search(expected, output := admin(*command.split())):
            return ""
    return f"{command}: {expected} expected, printed was:\n{output}"
