"""Runs every command of mqadmin 5.5.0 against a master and a slave of ours, as `mqadmin_commands` expects."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache.java_clients import mqadmin_process
from mqproof.conformance.hosts.processes import Cluster, cluster, free_port
from mqproof.impl.admin.cli import COMMANDS
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import Sent
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.runtime.network import Address
from tests.interop import mqadmin_commands
from tests.interop.mqadmin_commands import NOT_RUN, REFUSED, WORKING, Run

RELEASE = "5.5.0"
TOPIC, GROUP, OTHER, PRODUCERS = "Tried", "Tried_group", "Tried_other", "Tried_producers"
SECONDS_MAX = 60.0
TRIES_MAX = 3


def test_the_page_lists_every_command_with_its_result() -> None:
    text = mqadmin_commands.PAGE.read_text(encoding="utf-8")
    assert text == mqadmin_commands.page(text), "run python -m tests.interop.mqadmin_commands"
    assert len(mqadmin_commands.working()) >= 60
    assert set(mqadmin_commands.working()) <= set(COMMANDS)


@pytest.mark.apache
def test_every_command_has_the_result_of_the_page(tmp_path: Path) -> None:
    slave_port = free_port(below=3)
    with (
        master_and_slave(tmp_path, slave_port) as made,
        BlockingClient(made.name_server, producer=ProducerConfig(PRODUCERS)) as client,
    ):
        admin = MqAdmin(tmp_path, Address.parse(made.name_server))
        listed = set(re.findall(r"^   (\w+) ", admin.output("", "triggerLiteDispatch"), re.MULTILINE))
        assert listed == set(mqadmin_commands.names())
        facts = {
            "topic": TOPIC, "group": GROUP, "other": OTHER, "producers": PRODUCERS, "name": "broker-a",
            "broker": f"127.0.0.1:{made.broker_port}", "folder": str(tmp_path),
            "slave": f"127.0.0.1:{slave_port}",
        }  # fmt: skip
        facts |= begin(client, tmp_path)
        with client.consuming(GROUP, {TOPIC: "*"}, lambda _: None):
            time.sleep(2)
            problems = [problem for run in (*WORKING, *REFUSED) if (problem := tried(admin, run, facts))]
    assert not problems, "\n".join(problems)
    assert {run.command for run in NOT_RUN} <= listed


class MqAdmin:
    """Runs mqadmin until its output has what is expected, because it needs seconds to end."""

    def __init__(self, folder: Path, names: Address) -> None:
        self._folder = folder
        self._names = names

    def output(self, arguments: str, expected: str, *, ends: bool = False) -> str:
        """Return the output of mqadmin up to the expected part, or all of it."""
        log = self._folder / "mqadmin.log"
        with log.open("wb") as file:
            process = mqadmin_process(RELEASE, self._folder, self._names, *arguments.split(), output=file)
        deadline = time.monotonic() + SECONDS_MAX
        found = ""
        try:
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
                found = log.read_text(encoding="utf-8", errors="replace")
                if not ends and re.search(expected, found, re.MULTILINE):
                    return found
        finally:
            process.kill()
            process.wait(SECONDS_MAX)
        return log.read_text(encoding="utf-8", errors="replace")


def tried(admin: MqAdmin, run: Run, facts: dict[str, str]) -> str | None:
    """Run a command; return what was wrong. What another command changed may take a moment to be visible."""
    expected = run.expected.format(**{name: re.escape(value) for name, value in facts.items()})
    output = ""
    for _ in range(1 if run.refused else TRIES_MAX):
        arguments = run.arguments.format(**facts)
        output = admin.output(f"{run.command} {arguments}", expected, ends=run.ends)
        if found := re.search(expected, output, re.MULTILINE):
            if run.command == "sendMessage":
                facts["traced"] = re.findall(r"[0-9A-F]{32,}", output[found.start() :] + "0" * 32)[0]
            return None
        time.sleep(1)
    return f"{run.command} {run.arguments}: no {expected!r} in: {output[-1500:]}"


def begin(client: BlockingClient, folder: Path) -> dict[str, str]:
    """Create the topic with a first message, and the files that commands read."""
    topics = [{"topicName": "Listed", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}]
    (folder / "topics.json").write_text(json.dumps(topics), encoding="utf-8")
    (folder / "groups.json").write_text(json.dumps([{"groupName": "Listed_group"}]), encoding="utf-8")
    sent = client.send(new_message(TOPIC, b"first", tag="TagA", keys="key0"))
    assert isinstance(sent, Sent)
    return {"offset_id": sent.offset_message_id, "unique_key": sent.message_id, "traced": sent.message_id}


@contextmanager
def master_and_slave(folder: Path, slave_port: int) -> Iterator[Cluster]:
    """Start a name server, a master with access control and its slave."""
    master, slave = (folder / f"{node}.properties" for node in ("master", "slave"))
    write_properties(master, "\n- accessKey: readable\n  secretKey: '12345678'\n")
    write_properties(slave, " []\n")
    with cluster(folder / "cluster", "ASYNC_FLUSH") as made:
        made.broker_port = free_port(below=3)
        made.broker_options = ("--config", str(master), "--role", "ASYNC_MASTER", "--ha-port", "0")
        made.start_name_server()
        made.start_broker()
        made.start_server(
            "slave", "broker", "--namesrv", made.name_server, "--port", str(slave_port), "--store",
            str(folder / "slave"), "--name", "broker-a", "--role", "SLAVE", "--broker-id", "1",
            "--config", str(slave),
        )  # fmt: skip
        yield made


def write_properties(path: Path, accounts: str) -> None:
    """Write the configuration of a broker, and its accounts. Requests from this machine need none."""
    rules = path.with_suffix(".yml")
    rules.write_text(f"globalWhiteRemoteAddresses:\n- 127.0.0.1\naccounts:{accounts}", encoding="utf-8")
    rules.chmod(0o600)
    settings = {
        "aclEnable": "true",
        "aclFile": str(rules),
        "peerAddresses": "127.0.0.1",
        "traceTopicEnable": "true",
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
