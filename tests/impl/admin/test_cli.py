"""Tests the commands as processes, with a name server and a broker on real sockets, and their mistakes."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from typer.testing import CliRunner

from mqproof.impl.admin.cli import COMMANDS, app
from mqproof.impl.admin.commands.groups import changes_of_attributes
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from tests.impl.command.test_cli import MQPROOF, SERVE, run, server


def admin(*arguments: str, name_server: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MQPROOF, "admin", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "NAMESRV_ADDR": name_server},
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start a name server and a broker. Yields their addresses and the broker's store."""
    store: Path = tmp_path_factory.mktemp("admin") / "store"
    with server(*SERVE, "--store", str(store)) as (_, at):
        yield {**at, "store": str(store)}


def test_a_topic_and_the_messages_sent_to_it_are_found(cluster: dict[str, str]) -> None:
    where = ("--namesrv", cluster["namesrv"], "--topic", "T")
    run("send", *where, "--body", "hello", "--count", "2", "--tags", "a", "--quiet")
    listed = admin("topicList", name_server=cluster["namesrv"])
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "T" in listed.stdout.splitlines()
    route = admin("topicRoute", "-t", "T", name_server=cluster["namesrv"])
    assert cluster["broker"] in route.stdout
    assert "RW (6)" in route.stdout
    printed = admin("printMsg", "-t", "T", "-s", "a", name_server=cluster["namesrv"])
    assert (printed.returncode, printed.stderr) == (0, "")
    assert [line.split()[-1] for line in printed.stdout.splitlines()] == ["hello", "hello"]
    both = ",".join(line.split()[2] for line in printed.stdout.splitlines())
    shown = admin("queryMsgById", "-t", "T", "-i", both, name_server=cluster["namesrv"])
    assert shown.stdout.splitlines().count("hello") == 2
    again = admin("queryMsgById", "-t", "T", "-i", both, "-s", "true", name_server=cluster["namesrv"])
    assert [line.split()[0] for line in again.stdout.splitlines()] == ["SEND_OK", "SEND_OK"]
    silent = admin("printMsg", "-t", "T", "-s", "b", "-n", cluster["namesrv"])
    assert (silent.returncode, silent.stdout) == (0, "")


def test_a_group_has_5x_only_fields_where_they_were_given(cluster: dict[str, str]) -> None:
    make = ("updateSubGroup", "-c", "DefaultCluster", "-g")
    policy = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1000]}}
    more = ("-o", "true", "-p", json.dumps(policy), "--attributes", "+a=b,-c")
    for group, how in (("Plain", ()), ("New", more)):
        assert admin(*make, group, *how, name_server=cluster["namesrv"]).returncode == 0
    written = json.loads((Path(cluster["store"]) / "config" / "subscriptionGroup.json").read_text())
    plain, new = (written["subscriptionGroupTable"][group] for group in ("Plain", "New"))
    assert set(new) - set(plain) == {"consumeMessageOrderly", "groupRetryPolicy"}
    assert (new["consumeMessageOrderly"], new["groupRetryPolicy"]) == (True, policy)


def test_a_setting_unknown_to_the_broker_is_reported(cluster: dict[str, str]) -> None:
    change = ("updateBrokerConfig", "-b", cluster["broker"], "-k")
    known = admin(*change, "maxMessageSize", "-v", "4194304", name_server=cluster["namesrv"])
    assert (known.returncode, known.stdout) == (0, f"{cluster['broker']}: maxMessageSize=4194304\n")
    typo = admin(*change, "maxMesageSize", "-v", "1", name_server=cluster["namesrv"])
    assert (typo.returncode, "does not list this key" in typo.stdout) == (0, True)


def test_changes_of_attributes_are_sent_in_the_format_of_5x() -> None:
    assert changes_of_attributes("+a=b,-c,+d=") == {"+a": "b", "-c": "", "+d": ""}


def test_only_an_account_over_tls_can_administer(tmp_path: Path) -> None:
    own = trustme.CA().issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    tls, account = tmp_path / "tls.properties", tmp_path / "tools.yml"
    tls.write_text(
        f"tls.enable=true\ntls.server.mode=enforcing\n"
        f"tls.server.certPath={tmp_path}/cert.pem\ntls.server.keyPath={tmp_path}/key.pem\n"
    )
    account.write_text("accessKey: the-admin\nsecretKey: '87654321'\n")
    for secret in (tmp_path / "key.pem", account):
        secret.chmod(0o600)  # otherwise a warning says so
    rules, config = tmp_path / "plain_acl.yml", tmp_path / "broker.conf"
    rules.write_text("accounts: [{accessKey: the-admin, secretKey: '87654321', admin: true}]")
    config.write_text(f"aclEnable=true\naclFile={rules}\n")
    make = ("updateTopic", "-c", "DefaultCluster", "-t", "T")
    with server(*SERVE, "--store", str(tmp_path / "store"), "-c", str(config), "--tls", str(tls)) as (_, at):
        done, unsigned, plain = (
            admin(*make, *how, name_server=at["namesrv"])
            for how in (("--tls", str(tls), "--account", str(account)), ("--tls", str(tls)), ())
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"topic T is at {at['broker']}" in done.stdout
    assert unsigned.returncode == 1
    assert "the request has no access key" in unsigned.stderr
    assert plain.returncode == 4


MISTAKES = [
    (
        ("topicRoute", "-t", "T"),
        4,
        "GET_ROUTEINFO_BY_TOPIC: no connection to 127.0.0.1:1: Connection refused",
    ),
    (("topicRoute", "-t", "T", "-n", "x"), 2, "-n: 'x' is not an address, HOST:PORT expected"),
    (("topicRoute", "-t", "T", "-n", ";"), 2, "-n: no address, HOST:PORT expected"),
    (("topicRoute", "-t", "\udcff"), 2, "-t: '\\udcff', UTF-8 text expected"),
    (("updateTopic", "-t", "T"), 2, "give either -b HOST:PORT or -c CLUSTER"),
    (("updateTopic", "-t", "T", "-b", "h", "-o", "true"), 2, "-b: 'h' is not an address, HOST:PORT expected"),
    (("updateTopic", "-t", "T", "-c", "C", "-o", "maybe"), 2, "-o: 'maybe', true or false expected"),
    (("resetOffsetByTime", "-g", "G", "-t", "T", "-s", "soon"), 2, "-s: 'soon' is not a time; now,"),
    (("consumerProgress", "-t", "T"), 2, "-t, -s and -c need -g"),
    (("resetOffsetByTime", "-g", "G", "-t", "T", "-s", "0", "-q", "0"), 2, "-q needs -b"),
    (("resetOffsetByTime", "-g", "G", "-t", "T", "-s", "0", "-b", "h:1", "-o", "0"), 2, "-o needs -b and -q"),
    (("queryMsgByKey", "-t", "T", "-k", "k", "-p", "X"), 2, "-p: 'X', K or T expected"),
    (("queryMsgById", "-i", "zz", "-f", "runes"), 2, "-f: 'runes' is not a known character set"),
    (("queryMsgById", "-i", "zz", "-g", "G"), 2, "-g and -d must be given together"),
    (("queryMsgById", "-i", "z", "-s", "true", "-g", "G", "-d", "c"), 2, "give either -s true or -g and -d"),
    (("printMsg", "-t", "T", "-c", "runes"), 2, "-c: 'runes' is not a known character set"),
    (("updateSubGroup", "-c", "C", "-g", "G", "-p", "{"), 2, "-p: '{', a JSON object expected"),
    (("updateSubGroup", "-c", "C", "-g", "G", "-p", "3"), 2, "-p: '3', a JSON object expected"),
    (("updateSubGroup", "-c", "C", "-g", "G", "--attributes", "a=b"), 2, "--attributes: 'a=b', +NAME=VALUE"),
    (("topicList", "--tls", "/nowhere/t"), 2, "/nowhere/t: No such file or directory"),
    (("topicList", "--account", "/nowhere/a"), 2, "/nowhere/a: No such file or directory"),
    (("queryMsgById", "-i", "zz"), 1, "'zz' is not an offset message id"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_failure_is_one_line_with_its_exit_code(
    arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = CliRunner().invoke(app, ["admin", *arguments], env={"NAMESRV_ADDR": "127.0.0.1:1"})
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(f"mqproof admin {arguments[0]}: {message}")
    assert done.stderr.count("\n") == 1


def test_an_unknown_topic_gives_exit_code_1(cluster: dict[str, str]) -> None:
    done = admin("topicStatus", "-t", "unknown", name_server=cluster["namesrv"])
    assert (done.returncode, done.stderr) == (
        1,
        "mqproof admin topicStatus: the name server knows no topic unknown\n",
    )


def test_the_cluster_is_listed_and_an_empty_list_is_not_a_success(cluster: dict[str, str]) -> None:
    shown = admin("clusterList", name_server=cluster["namesrv"])
    assert (shown.returncode, shown.stderr) == (0, "")
    assert cluster["broker"] in shown.stdout
    status = admin("brokerStatus", "-c", "DefaultCluster", name_server=cluster["namesrv"])
    assert "brokerVersionDesc" in status.stdout
    with server("namesrv", "--port", "0") as (_, at):
        alone = admin("clusterList", name_server=at["namesrv"])
    assert (alone.returncode, alone.stderr) == (
        1,
        "mqproof admin clusterList: the name server knows no broker\n",
    )


def test_closing_the_output_early_is_not_an_error(cluster: dict[str, str]) -> None:
    command = " ".join([*map(repr, MQPROOF), "admin", "topicList", "-n", cluster["namesrv"], "|", "true"])
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (141, "")


def test_every_command_has_an_example() -> None:
    for name, command in COMMANDS.items():
        assert f"Example: mqproof admin {name} -n " in (command.__doc__ or ""), name


def test_both_help_options_work_and_list_every_command() -> None:
    for option in ("-h", "--help"):
        shown = admin(option)
        assert shown.returncode == 0
        assert [line.split()[0] for line in shown.stdout.partition("Commands:\n")[2].splitlines()] == list(
            COMMANDS
        )


def test_the_connected_clients_are_shown(cluster: dict[str, str]) -> None:
    received = threading.Event()
    names = cluster["namesrv"]
    with BlockingClient(names, instance="shown") as client:
        client.send_or_raise(new_message("Shown", b"x"))
        with client.consuming("shown-group", {"Shown": "*"}, lambda _: received.set()):
            assert received.wait(60)
            producer = admin("producerConnection", "-g", "mqproof_producer", "-t", "Shown", name_server=names)
            consumer = admin("consumerConnection", "-g", "shown-group", name_server=names)
            status = admin("consumerStatus", "-g", "shown-group", name_server=names)
            missing = admin("consumerStatus", "-g", "shown-group", "-i", "absent", name_server=names)
    assert "@shown " in producer.stdout
    assert ("@shown " in consumer.stdout, "%RETRY%shown-group" in consumer.stdout) == (True, True)
    rows = [line.split()[1:4] for line in status.stdout.splitlines() if " Shown " in line]
    assert rows == [["Shown", "broker-a", str(queue_id)] for queue_id in range(4)]
    assert (missing.returncode, missing.stderr) == (
        1,
        "mqproof admin consumerStatus: no such member of group shown-group answers\n",
    )
    for command in ("producerConnection -g absent -t Shown", "consumerConnection -g shown-group"):
        refused = admin(*command.split(), name_server=names)
        assert (refused.returncode, refused.stdout) == (1, "")
