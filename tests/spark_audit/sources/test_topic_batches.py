"""A watch of topics without Spark, over real sockets: what each batch reads, and where the next begins."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult
from mqproof.impl.remoting.message import Message
from mqproof.spark_audit.checks import Check
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.incremental.local_watch import watch_locally
from mqproof.spark_audit.incremental.state_folder import newest, read_manifest
from mqproof.spark_audit.incremental.watch import Source, Watch
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.topic_batches import Limits, next_messages
from mqproof.spark_audit.sources.topic_positions import read_options
from tests.impl.command.test_cli import SERVE, server
from tests.spark_audit.conftest import write_ndjson

NO_CHECKS: dict[str, Check] = {}
MANY = Limits(1_000_000, 1 << 30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of its name server."""
    with server(*SERVE, "--store", str(tmp_path_factory.mktemp("topics"))) as (_, at):
        yield at["namesrv"]


def _send(cluster: str, topic: str, *bodies: bytes) -> None:
    with BlockingClient(cluster) as client:
        for body in bodies:
            client.send(Message(topic, body))


def _events(node: str, count: int) -> bytes:
    return write_ndjson([{"ts": 1000 + n, "seq": n, "node": node, "kind": "crash"} for n in range(count)])


def _watch(request: Watch, folder: Path) -> list[str]:
    """Judge what there is, as a process of its own; return its lines."""
    lines: list[str] = []
    with active.embedded(), closing(Database(folder)) as database:
        watch_locally(database, request, folder, print, lines.append)
    return lines


def test_a_watched_topic_is_read_once_in_bounded_batches_and_no_message_stops_the_watch(
    cluster: str, tmp_path: Path
) -> None:
    # Each message has two lines; a queue's part of a batch is rounded up.
    _send(cluster, "Watched", *(_events(f"n{node:02}", 2) for node in range(16)), b"\n\n", b'"\xff"')
    topics = Source(topics={"namesrv": cluster, "topics": "Watched"})
    request = Watch(topics, tmp_path / "state", 0, once=True, batch_messages=9, checks=NO_CHECKS)
    lines = _watch(request, tmp_path / "scratch")
    read = [int(line.split()[2]) for line in lines]
    assert (len(read), sum(read)) == (2, 32), lines
    assert min(read) >= 8, lines
    (written,) = tmp_path.glob("state/unreadable/batch-*/*.json")
    kept = json.loads(written.read_text())
    assert re.fullmatch(r"Watched@broker-a:\d\.ndjson", kept["file"])
    assert _watch(request, tmp_path / "scratch") == []
    _send(cluster, "Watched", _events("late", 1))
    (line,) = _watch(request, tmp_path / "scratch")
    assert line.startswith("batch 2: 1 event")
    state = newest(tmp_path / "state")
    assert state
    assert sum(read_manifest(state).places.values()) == 19


def test_a_queue_without_an_answer_keeps_its_place_and_the_others_go_on(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _send(cluster, "Partly", *(_events(f"n{node}", 1) for node in range(8)))
    options = read_options({"namesrv": cluster, "topics": "Partly"})
    pull = BlockingClient.pull

    def fail_for_one(client: BlockingClient, queue: MessageQueue, offset: int, max_count: int) -> PullResult:
        if queue.queue_id == 1:
            raise ClientError("no answer")
        return pull(client, queue, offset, max_count=max_count)

    said: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(BlockingClient, "pull", fail_for_one)
        first = next_messages(options, {}, MANY, tmp_path, said.append)
    assert said == ["Partly@broker-a:1: skipped for now: no answer"]
    assert first.places["Partly@broker-a:1"] == 0
    (tmp_path / "next").mkdir()
    rest = next_messages(options, first.places, MANY, tmp_path / "next", said.append)
    assert [file.name for file in rest.files] == ["Partly@broker-a:1.ndjson"]
    read = [line for file in (*first.files, *rest.files) for line in file.read_bytes().splitlines()]
    assert sorted(read) == sorted(_events(f"n{node}", 1).strip() for node in range(8))


def test_each_queue_has_its_part_of_the_bytes_and_advances(cluster: str, tmp_path: Path) -> None:
    _send(cluster, "Large", *(_events(f"n{node}", 1) for node in range(160)))
    options = read_options({"namesrv": cluster, "topics": "Large"})
    taken = next_messages(options, {}, Limits(1_000, 1), tmp_path, print)
    assert set(taken.places.values()) == {32}, "one pull of each queue"


def test_deleted_messages_and_unknown_topics_are_refused(cluster: str, tmp_path: Path) -> None:
    _send(cluster, "Short", _events("n", 1))
    options = read_options({"namesrv": cluster, "topics": "Short"})
    with pytest.raises(InputError, match="--topic: Short@broker-a:0: the next offset is 99"):
        next_messages(options, {"Short@broker-a:0": 99}, MANY, tmp_path, print)
    unknown = replace(options, topics=("absent",))
    with pytest.raises(InputError, match="--topic: no name server knows topic absent"):
        next_messages(unknown, {}, MANY, tmp_path, print)
