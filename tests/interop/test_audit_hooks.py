"""Java applications with audit hooks, at our broker and at Apache's: no false alarm, and all losses found."""

import json
import os
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from mqproof.conformance.adapters.apache.artifacts import (
    CLIENT_RELEASES,
    ApacheMissingError,
    client_class_path,
    releases,
)
from mqproof.conformance.adapters.apache.java_clients import java_client
from mqproof.conformance.adapters.clients.driver_client import DriverClient
from mqproof.conformance.client_scenarios.sites import OURS, Site, site
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.remoting.message import Message
from mqproof.report.model import Verdict
from tests.interop.audit_hooks import agent, go_application, hooks_jar, judged, recovered

pytestmark = [pytest.mark.apache, pytest.mark.timeout(900)]

WAIT_S: Final = 150.0
TOPIC, GROUP = "hooked", "hooked-group"
LOST: Final = 7

StartClient = Callable[[str], AbstractContextManager[DriverClient]]


@pytest.fixture(scope="module", params=[OURS, releases()[-1]])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    try:
        hooks_jar()
        with site(request.param, tmp_path_factory.mktemp("site")) as made:
            yield made
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")


def _starter(at: Site, release: str, folder: Path) -> StartClient:
    """Return a function that starts a Java application; the argument is the node of its event log."""
    try:
        classes = client_class_path(release)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")

    def start(node: str) -> AbstractContextManager[DriverClient]:
        jvm = (agent(folder / "events", node, file_seconds=1),)
        return java_client(release, folder, at.name_server, jvm=jvm, classes=classes, name=node)

    return start


def _listen(client: DriverClient, is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        assert time.monotonic() < deadline, Counter(str(each["body"]) for each in client.messages)
        client.listen(0.1)


def _received(*clients: DriverClient) -> set[str]:
    return {str(message["msgId"]) for client in clients for message in client.messages}


def _rows(events: Path) -> list[dict[str, Any]]:
    files = sorted(events.glob("*.ndjson"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("release", CLIENT_RELEASES)
def test_kills_raise_no_alarm_and_losses_are_found(at: Site, release: str, tmp_path: Path) -> None:
    start = _starter(at, release, tmp_path)
    topic, group = f"{TOPIC}-{release.replace('.', '-')}", f"{GROUP}-{release.replace('.', '-')}"
    with start("producer") as producer:
        with start("consumer") as consumer:
            consumer.subscribe("a", topic, group)
            sent = len(producer.send(topic, 10)) + len(producer.send(topic, 5, mode="async"))
            producer.send(topic, 5, mode="batch")
            producer.put(topic, "failing", tag="fail")
            _listen(consumer, lambda: len(_received(consumer)) >= sent + 6)
            # The broker is killed while messages are sent, and then the consumer while it receives.
            producer.burst(topic, "burst-", 60, 50)
            at.crash()
            consumer.kill()
        with start("consumer") as consumer:
            consumer.subscribe("a", topic, group)
            _listen(producer, lambda: any(event["event"] == "burst-end" for event in producer.others))
            assert producer.put(topic, "last")["status"] == "SEND_OK"
            _listen(consumer, lambda: any(message["body"] == "last" for message in consumer.messages))
        time.sleep(2)  # the producer's file of one second is finished
        verdicts, found = judged(tmp_path / "events", tmp_path / "kills")
        assert found == []
        assert verdicts["DELIV-1"][0] is Verdict.UNKNOWN
        assert "consumer dropped an unknown number of events" in verdicts["DELIV-1"][1]
        # While no member runs, the group's offsets are moved beyond messages that it has not received.
        lost = {str(event["msgId"]) for event in producer.send(topic, LOST)}
        time.sleep(1)
        _skip_all(at, topic, group)
        with start("consumer") as consumer:
            consumer.subscribe("a", topic, group)
            for number in range(8):  # all queues
                producer.put(topic, f"after-{number}")
            _listen(consumer, lambda: len(_received(consumer)) >= 8)
            assert not _received(consumer) & lost
    verdicts, found = judged(tmp_path / "events", tmp_path / "losses")
    assert {row["msg_id"] for row in found if row["invariant"] == "DELIV-1"} == lost
    assert verdicts["DELIV-1"][0] is Verdict.VIOLATED, verdicts["DELIV-1"]
    assert [row for row in found if row["invariant"] != "DELIV-1"] == []


def test_a_go_application_that_is_killed_raises_no_alarm_and_losses_are_found(
    at: Site, tmp_path: Path
) -> None:
    try:
        program = go_application()
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    topic, group, events = f"{TOPIC}-go", f"{GROUP}-go", tmp_path / "events"
    settings = {
        "AUDIT_HOOKS_DIRECTORY": str(events),
        "AUDIT_HOOKS_NODE": "go",
        "AUDIT_HOOKS_FILE_SECONDS": "1",
    }

    def started(reads: str, count: int) -> subprocess.Popen[str]:
        arguments = [str(program), at.name_server, topic, reads, str(count), "50"]
        environment = {**os.environ, **settings}
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)

    with started(group, 1000) as killed:
        deadline = time.monotonic() + WAIT_S
        while not any(row["kind"] == "consume_ok" for row in _rows(events)):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        killed.kill()
    with started(group, 60) as application:
        time.sleep(1)
        at.crash()
        printed, _ = application.communicate(timeout=WAIT_S)
    assert "missing 0" in printed, printed
    verdicts, found = judged(events, tmp_path / "kills")
    assert found == []
    assert "go dropped an unknown number of events" in verdicts["DELIV-1"][1]
    with started("-", LOST) as sender:
        sender.communicate(timeout=WAIT_S)
    time.sleep(1)
    _skip_all(at, topic, group)
    with started(group, 8) as application:
        printed, _ = application.communicate(timeout=WAIT_S)
    assert "missing 0" in printed, printed
    verdicts, found = judged(events, tmp_path / "losses")
    assert Counter(row["invariant"] for row in found) == {"DELIV-1": LOST}, found
    assert verdicts["DELIV-1"][0] is Verdict.VIOLATED


def _skip_all(at: Site, topic: str, group: str) -> None:
    """Set the group's offsets to the ends of the queues, as an operator's tool does; no event log has it."""
    with BlockingClient(at.name_server, consumer_group=group) as client:
        for queue in client.queues(topic):
            client.commit(queue, client.max_offset(queue))


def test_without_space_rows_are_dropped_and_counted_and_sends_go_on(at: Site, tmp_path: Path) -> None:
    start = _starter(at, CLIENT_RELEASES[-1], tmp_path)
    with start("full") as client:
        client.send(f"{TOPIC}-full", 5)
        time.sleep(0.5)
        # Its files may not grow any more: each write fails as on a full disk.
        was = resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
        assert len(client.send(f"{TOPIC}-full", 50)) == 50
        time.sleep(0.5)
        resource.prlimit(client.pid, resource.RLIMIT_FSIZE, was)
        time.sleep(1.5)  # the writer tries again each second
        client.send(f"{TOPIC}-full", 5)
    rows = _rows(tmp_path / "events")
    gaps = [row["attrs"] for row in rows if row["kind"] == "gap"]
    assert sum(int(gap["dropped"]) for gap in gaps) == 2 * 60 - (len(rows) - len(gaps)) > 0
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    verdicts, _ = judged(tmp_path / "events", tmp_path / "judged")
    assert verdicts["DELIV-1"][0] is Verdict.UNKNOWN


def test_recovery_finishes_what_a_killed_process_left(at: Site, tmp_path: Path) -> None:
    start = _starter(at, CLIENT_RELEASES[0], tmp_path)
    with start("killed") as client:
        client.send(f"{TOPIC}-recovery", 5)
        time.sleep(1)
        client.kill()
    assert recovered(tmp_path / "events") == "killed: finished, with a gap\n"
    assert Counter(row["kind"] for row in _rows(tmp_path / "events")) == {"send": 5, "send_ack": 5, "gap": 1}
    assert recovered(tmp_path / "events") == ""


def test_events_in_a_topic_are_those_of_a_java_application(at: Site, tmp_path: Path) -> None:
    classes = client_class_path(CLIENT_RELEASES[-1])
    logs, topic = _topic_of_events(at, "java"), f"{TOPIC}-in-topic"
    to_topic = agent(None, "app", topic=logs, namesrv=at.name_server)
    with java_client(
        CLIENT_RELEASES[-1], tmp_path, at.name_server, jvm=(to_topic,), classes=classes, name="app"
    ) as client:
        client.subscribe("a", topic, f"{GROUP}-in-topic")
        sent = {str(event["msgId"]) for event in client.send(topic, 20)}
        _listen(client, lambda: _received(client) >= sent)
    _assert_clean(
        _in_topic(at, logs, lambda rows: len({*_ids(rows, "deliver")}) >= len(sent)), sent, tmp_path
    )


def test_events_in_a_topic_are_those_of_a_go_application(at: Site, tmp_path: Path) -> None:
    try:
        program = go_application()
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    logs, topic = _topic_of_events(at, "go"), f"{TOPIC}-go-in-topic"
    settings = {
        "AUDIT_HOOKS_TOPIC": logs,
        "AUDIT_HOOKS_NAMESRV": at.name_server,
        "AUDIT_HOOKS_NODE": "app",
    }
    done = subprocess.run(
        [str(program), at.name_server, topic, f"{GROUP}-go-in-topic", "20", "20"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
        cwd=tmp_path,
        env={**os.environ, **settings},
    )
    assert "missing 0" in done.stdout, done.stdout
    rows = _in_topic(at, logs, lambda rows: {*_ids(rows, "send_ack")} <= {*_ids(rows, "deliver")} != set())
    _assert_clean(rows, {*_ids(rows, "send_ack")}, tmp_path)


def _topic_of_events(at: Site, name: str) -> str:
    """Create a topic for events, and return its name."""
    topic = f"AUDIT_EVENTS-{name}"
    with BlockingClient(at.name_server) as client:
        client.send(Message(topic, b"\n"))
    return topic


def _assert_clean(rows: list[dict[str, Any]], sent: set[str], folder: Path) -> None:
    """The rows are those of one process, and show that all messages were delivered."""
    assert Counter(row["node"].rpartition("-")[0] for row in rows).keys() == {"app"}
    assert [row["seq"] for row in sorted(rows, key=lambda row: row["seq"])] == list(range(len(rows)))
    assert set(_ids(rows, "send_ack")) == set(_ids(rows, "deliver")) == sent
    (folder / "events").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "events" / "topic.ndjson").write_text(lines, encoding="utf-8")
    verdicts, found = judged(folder / "events", folder / "judged")
    assert (found, verdicts["DELIV-1"][0]) == ([], Verdict.HELD), verdicts["DELIV-1"]


def _ids(rows: list[dict[str, Any]], kind: str) -> list[str]:
    return [row["msg_id"] for row in rows if row["kind"] == kind]


def _in_topic(at: Site, topic: str, is_done: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Return the events in the messages of the topic, once all are there."""
    deadline = time.monotonic() + WAIT_S
    while True:
        rows: list[dict[str, Any]] = []
        with BlockingClient(at.name_server, consumer_group="reads-events") as client:
            for queue in client.queues(topic):
                place = client.min_offset(queue)
                while place < client.max_offset(queue):
                    pulled = client.pull(queue, place, max_count=32)
                    bodies = [stored.message.body for stored in pulled.messages]
                    rows += [json.loads(line) for body in bodies for line in body.split(b"\n") if line]
                    place = pulled.next_offset
        if is_done(rows):
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.5)
