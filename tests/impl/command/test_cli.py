"""Tests the commands as processes over real sockets: output, exit codes, and data that survives."""

import contextlib
import inspect
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import Sent
from mqproof.impl.command import cli
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.remoting.message import Message
from mqproof.spec.events import Kind, read_log

MAIN = "from mqproof.cli import main; main()"
MQPROOF = [sys.executable, "-c", MAIN]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MQPROOF, *arguments], capture_output=True, text=True, timeout=120, check=False)


@contextlib.contextmanager
def server(*arguments: str, before: str = "") -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A running server and the addresses in its ready line; killed at the end if it still runs. `before` is
    what its process does first."""
    command = [sys.executable, "-c", before + MAIN, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        first, *rest = process.stdout.readline().split()
        assert first == "ready"
        yield process, dict(part.split("=") for part in rest)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=120)
        if process.stdout is not None:
            process.stdout.close()


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=120)


SERVE = ("serve", "--namesrv-port", "0", "--broker-port", "0", "--flush", "SYNC_FLUSH")


def test_messages_sent_by_one_command_are_consumed_by_another(tmp_path: Path) -> None:
    store, events = str(tmp_path / "store"), tmp_path / "events.ndjson"
    with server(*SERVE, "--store", store, "--events", str(events)) as (process, at):
        assert set(at) == {"namesrv", "broker"}
        route = ("--namesrv", at["namesrv"], "--topic", "T")
        sent = run("send", *route, "--body", "hello", "--count", "3", "--outstanding", "3")
        assert (sent.returncode, sent.stderr) == (0, "")
        assert sent.stdout.count("SEND_OK ") == 4  # three messages and the summary
        got = run("consume", *route, "--group", "G", "--from-min")
        assert (got.returncode, got.stderr) == (0, "")
        assert [line.split()[-1] for line in got.stdout.splitlines()] == ["hello"] * 3
        again = run("consume", *route, "--group", "G")
        assert (again.returncode, again.stdout) == (0, "")
        assert stop(process) == 0
    reported = list(read_log(events))
    assert [event.seq for event in reported if event.node == "broker-a"] == list(
        range(sum(event.node == "broker-a" for event in reported))
    )
    assert sum(event.kind is Kind.SEND_ACK for event in reported) == 3


def test_the_consumer_shows_all_that_a_message_was_sent_with(tmp_path: Path) -> None:
    with server(*SERVE, "--store", str(tmp_path / "store")) as (_, at):
        route = f"--namesrv {at['namesrv']} --topic T"
        single = f"send {route} --body x --tags A --keys k1 --property mine=1 --group PG"
        assert run(*single.split()).returncode == 0
        batches = f"send {route} --body b --count 5 --batch 2 --sharding-key s --quiet"
        assert "SEND_OK 5" in run(*batches.split()).stdout
        got = run(*f"consume {route} --group G --from-time 2020-01-01 --json".split())
        lines = [msgspec.json.decode(line) for line in got.stdout.splitlines()]
        assert sorted(line["body"] for line in lines) == [*"bbbbb", "x"]
        (first,) = [line for line in lines if line["body"] == "x"]
        assert first["properties"].items() >= {"TAGS": "A", "KEYS": "k1", "mine": "1"}.items()
        assert {line["queue_id"] for line in lines if line["body"] == "b"} == {ord("s") % 4}  # the key's hash
        assert run(*f"consume {route} --group H --from-max".split()).stdout == ""
        consumed = run(*f"consume {route} --group J --share --tags A".split())
        assert [line.split()[-1] for line in consumed.stdout.splitlines()] == ["x"], consumed.stderr


def test_acknowledged_messages_survive_a_kill(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with server(*SERVE, "--store", store) as (process, at):
        route = ("--namesrv", at["namesrv"], "--topic", "T")
        summary = tmp_path / "summary.json"
        sent = run(
            "send",
            *route,
            "--size",
            "100",
            "--count",
            "200",
            "--outstanding",
            "20",
            "--quiet",
            "--json",
            str(summary),
        )
        assert sent.returncode == 0
        assert msgspec.json.decode(summary.read_bytes())["outcomes"] == {"SEND_OK": 200}
        process.kill()
    with server(*SERVE, "--store", store) as (process, at):
        got = run("consume", "--namesrv", at["namesrv"], "--topic", "T", "--group", "G", "--from-min")
        assert len(got.stdout.splitlines()) == 200
        assert stop(process) == 0


def test_name_server_and_broker_can_run_in_two_processes(tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    with server("namesrv", "--port", "0") as (namesrv, at):
        config.write_text(
            f"brokerName=b-x\nlistenPort=0\nnamesrvAddr={at['namesrv']}\n"
            f"storePathRootDir={tmp_path}/store\ndeleteWhen=04\n"
        )
        with server("broker", "-c", str(config)) as (broker, broker_at):
            assert set(broker_at) == {"broker"}
            route = ("--namesrv", at["namesrv"], "--topic", "T")
            assert "T@b-x:" in run("send", *route, "--body", "x").stdout
            assert stop(broker) == 0
        assert stop(namesrv) == 0


def test_the_blocking_client_sends_and_pulls_without_an_event_loop(tmp_path: Path) -> None:
    with (
        server(*SERVE, "--store", str(tmp_path / "store")) as (process, at),
        BlockingClient(at["namesrv"]) as client,
    ):
        outcome = client.send(Message("T", b"x"))
        assert isinstance(outcome, Sent)
        assert outcome.queue in client.queues("T")
        (stored,) = client.pull(outcome.queue, 0).messages
        assert stored.message_id == outcome.message_id
        client.commit(outcome.queue, 1)
        assert client.committed(outcome.queue) == 1
        assert process.poll() is None


def test_more_connections_than_open_files_do_not_block_the_files_of_the_store(tmp_path: Path) -> None:
    """A store that may not open a file becomes read-only for good.

    Too many connections must not cause that.
    """
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)); "
    serve = ("serve", "--namesrv-port", "0", "--broker-port", "0", "--store", str(tmp_path / "store"))
    with (
        server(*serve, before=few) as (_, at),
        BlockingClient(at["namesrv"]) as client,
        contextlib.ExitStack() as strangers,
    ):
        assert _is_sent_at_last(client, "T")
        for name in ("broker", "namesrv"):
            host, _, port = at[name].rpartition(":")
            for _ in range(200):
                strangers.enter_context(socket.create_connection((host, int(port)), timeout=120))
        assert all(_is_sent_at_last(client, topic) for topic in "TUV")


def _is_sent_at_last(client: BlockingClient, topic: str) -> bool:
    """Try for a while: on a busy machine, an attempt may come too late."""
    sends = (client.send(Message(topic, b"x"), timeout_ms=60_000) for _ in range(20))
    return any(isinstance(outcome, Sent) for outcome in sends)


def test_a_second_broker_on_the_same_store_is_refused_in_one_line(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with server(*SERVE, "--store", store):
        second = run(*SERVE, "--store", store)
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr.count("\n") == 1
    assert "is another broker using" in second.stderr


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with server("namesrv", "--port", "0") as (_, at):
        second = run("namesrv", "--port", at["namesrv"].rpartition(":")[2])
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "in use" in second.stderr


MISTAKES = [
    ("serve --flush FAST", "serve: --flush is 'FAST', SYNC_FLUSH or ASYNC_FLUSH expected"),
    ("broker -c /nowhere/x.conf", "broker: /nowhere/x.conf: No such file or directory"),
    ("send --namesrv x --topic T --body b", "send: --namesrv: 'x' is not an address, HOST:PORT expected"),
    ("send --namesrv h:1 --topic T", "send: give either --body TEXT or --size BYTES"),
    ("consume --namesrv 127.0.0.1:1 --topic T --group G", "consume: queues of T: no connection to"),
    ("send --namesrv h:1 --topic T --size 9000000", "send: the body has 9000000 bytes, at most"),
    ("send --namesrv h:1 --topic \udcff --body b", "send: --topic is '\\udcff', UTF-8 text expected"),
    ("send --namesrv h:1 --topic T --body \udcff", "send: --body is '\\udcff', UTF-8 text expected"),
    ("consume --namesrv h:1 --topic T --group \udcff", "consume: --group is '\\udcff', UTF-8 text expected"),
    (
        "send --namesrv h:1 --topic T --body b --events /nowhere/e",
        "send: /nowhere/e: No such file or directory",
    ),
    (
        "consume --namesrv h:1 --topic T --group G --events /nowhere/e",
        "consume: /nowhere/e: No such file or directory",
    ),
    ("send --namesrv h:1 --topic T --body b --property x", "send: --property is 'x', NAME=VALUE expected"),
    ("send --namesrv h:1 --topic T --body b --property KEYS=x", "send: property 'KEYS' is reserved"),
    (
        "consume --namesrv h:1 --topic T --group G --from-min --from-max",
        "consume: give one of --from-min, --from-max and --from-time",
    ),
    ("consume --namesrv h:1 --topic T --group G --orderly", "consume: --orderly needs --share"),
    ("namesrv --host a..b", "namesrv: 'a..b' is not a valid host name"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_a_mistake_is_reported_in_one_line_with_exit_code_2(arguments: str, message: str) -> None:
    done = run(*arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"mqproof {message}")
    assert done.stderr.count("\n") == 1


def test_a_summary_that_cannot_be_written_is_reported_in_one_line() -> None:
    where = ("--namesrv", "127.0.0.1:1", "--topic", "T")
    done = run("send", *where, "--body", "b", "--json", "/nowhere/s.json")
    assert done.returncode == 2
    assert done.stderr == "mqproof send: --json /nowhere/s.json: No such file or directory\n"


def test_a_mistake_in_a_properties_file_names_file_and_line(tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    config.write_text("# fine\nflushDiskType=MAYBE\n")
    done = run("broker", "-c", str(config))
    assert (done.returncode, done.stderr) == (
        2,
        f"mqproof broker: {config}:2: flushDiskType is 'MAYBE', SYNC_FLUSH or ASYNC_FLUSH expected\n",
    )


def test_an_invalid_key_value_configuration_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "kvConfig.json").write_text("[]")
    done = run("namesrv", "--port", "0", "--store", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"mqproof namesrv: {tmp_path}/kvConfig.json: ")
    assert done.stderr.count("\n") == 1


def test_a_send_without_a_reachable_name_server_fails_with_exit_code_1() -> None:
    done = run("send", "--namesrv", "127.0.0.1:1", "--topic", "T", "--body", "b")
    assert done.returncode == 1
    assert done.stdout.startswith("NO_ROUTE ")


def test_closing_the_output_early_is_not_an_error_and_unseen_messages_are_not_consumed(
    tmp_path: Path,
) -> None:
    with server(*SERVE, "--store", str(tmp_path / "store")) as (_, at):
        where = ("--namesrv", at["namesrv"], "--topic", "T")
        run("send", *where, "--size", "100000", "--count", "20", "--quiet")
        consume = subprocess.Popen(
            [*MQPROOF, "consume", *where, "--group", "G"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert consume.stdout is not None
        consume.stdout.readline()
        consume.stdout.close()
        assert consume.stderr is not None
        with consume.stderr:
            assert consume.stderr.read() == b""
        assert consume.wait(timeout=120) == 141
        rest = run("consume", *where, "--group", "G")
    assert rest.stdout.count("\n") == 20


def test_the_name_servers_can_be_given_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(*SERVE, "--store", str(tmp_path / "store")) as (_, at):
        monkeypatch.setenv("NAMESRV_ADDR", at["namesrv"])
        assert run("send", "--topic", "T", "--body", "hello").returncode == 0
        assert run("consume", "--topic", "T", "--group", "G").stdout.endswith("hello\n")


def test_servers_listen_on_the_loopback_address_by_default() -> None:
    defaults = [
        inspect.signature(command).parameters["host"].default
        for command in (cli.namesrv, cli.broker, cli.serve)
    ]
    configs = [NameServerConfig().host, BrokerConfig().host]
    assert set(defaults + configs) == {"127.0.0.1"}


def test_the_help_of_every_command_has_an_example() -> None:
    for command in ("namesrv", "broker", "serve", "send", "consume"):
        shown = run(command, "--help")
        assert shown.returncode == 0
        assert f"Example: mqproof {command}" in " ".join(shown.stdout.split())
