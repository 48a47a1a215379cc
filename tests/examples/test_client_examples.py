"""The client examples print the expected output, run as a user would run them against one broker."""

import re
from collections.abc import Iterator

import pytest

from tests.examples.programs import run
from tests.impl.command.test_cli import SERVE, server


@pytest.fixture(scope="module")
def namesrv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(*SERVE, "--store", str(tmp_path_factory.mktemp("examples"))) as (_, addresses):
        yield addresses["namesrv"]


def test_ten_messages_are_produced_and_consumed(namesrv: str) -> None:
    lines = run("produce_consume.py", namesrv=namesrv).splitlines()
    assert sum(line.startswith("stored in example_hello@broker-a:") for line in lines) == 10
    consumed = sorted(line for line in lines if line.startswith("consumed"))
    assert consumed == [
        f"consumed 'hello {number}', tag greeting, keys ['hello-{number}']" for number in range(10)
    ]
    assert lines[-1] == "all messages are consumed"


def test_messages_of_one_order_are_consumed_in_sequence_despite_a_retry(namesrv: str) -> None:
    lines = run("ordered.py", namesrv=namesrv).splitlines()
    assert lines == [
        *(f"order-{number}: created paid packed shipped" for number in (1, 2, 3)),
        "1 message failed once and was delivered again",
    ]


def test_a_service_replies_and_a_request_without_a_reply_ends(namesrv: str) -> None:
    assert run("request_reply.py", namesrv=namesrv).splitlines() == [
        "hello? HELLO",
        "how are you? HOW ARE YOU",
        "silence? no reply to the request within 500 ms",
    ]


def test_a_delayed_message_arrives_after_its_delay(namesrv: str) -> None:
    first, second = run("delayed.py", namesrv=namesrv).splitlines()
    assert first.startswith("'now' arrived")
    assert second.startswith("'in one second' arrived")
    assert float(second.split()[-6]) >= 1


def test_messages_arrive_at_their_times_unless_they_are_recalled(namesrv: str) -> None:
    assert run("recall.py", namesrv=namesrv).splitlines() == ["'at a time' arrived", "'after 1.5 s' arrived"]


def test_messages_sent_in_batches_are_stored_and_consumed(namesrv: str) -> None:
    single, batched, stored, consumed = run("batch.py", namesrv=namesrv).splitlines()
    assert (single.startswith("1000 requests: "), batched.startswith("in batches: ")) == (True, True)
    assert stored == "2000 of 2000 messages are stored"
    calls = re.fullmatch(r"consumed all of them in (\d+) calls of the listener", consumed)
    assert calls is not None
    assert int(calls[1]) < 2000


def test_each_member_of_a_broadcasting_group_receives_every_message(namesrv: str) -> None:
    prices = "{'cake': '3.50', 'coffee': '2.90', 'tea': '2.10'}"
    assert run("broadcast.py", namesrv=namesrv).splitlines() == [f"cache-1 {prices}", f"cache-2 {prices}"]


def test_messages_are_selected_by_their_properties(namesrv: str) -> None:
    setting = ("-c", "DefaultCluster", "-k", "enablePropertyFilter", "-v", "true")
    run("-m", "mqproof", "admin", "updateBrokerConfig", *setting, namesrv=namesrv)
    expected = "received espresso machine for 900 and kettle for 40\n"
    assert run("sql_filter.py", namesrv=namesrv) == expected


def test_messages_are_selected_by_a_function_in_a_filter_server(namesrv: str) -> None:
    setting = ("-c", "DefaultCluster", "-k", "filterServerEnable", "-v", "true")
    run("-m", "mqproof", "admin", "updateBrokerConfig", *setting, namesrv=namesrv)
    brokers = run("-m", "mqproof", "admin", "clusterList", namesrv=namesrv)
    (broker,) = re.findall(r"127\.0\.0\.1:\d+", brokers)
    with server("filter-server", "--broker", broker):
        received = run("filter_function/alerts.py", namesrv=namesrv)
    assert received == "received ALERT disk full and ALERT fan stopped\n"


def test_offsets_in_sqlite_are_where_the_next_consumer_continues(namesrv: str) -> None:
    shown = run("offsets_in_sqlite.py", namesrv=namesrv).splitlines()
    assert shown == ["[b'1', b'2', b'3']", "[b'4', b'5', b'6']"]


def test_the_balance_counts_each_payment_once(namesrv: str) -> None:
    assert run("offsets_in_database.py", namesrv=namesrv).splitlines() == ["balance 132", "balance 264"]


def test_a_message_that_always_fails_becomes_a_dead_letter(namesrv: str) -> None:
    lines = run("dead_letters.py", namesrv=namesrv).splitlines()
    assert [line for line in lines if "twelve" in line] == [
        *(f"delivery {number} of 'twelve'" for number in (1, 2, 3)),
        "dead letter 'twelve' of topic example_payments",
    ]
    assert lines.count("delivery 1 of '120'") == 1
    assert "delivery 2 of '120'" not in lines


def test_a_group_reads_messages_again_after_a_reset_to_a_timestamp(namesrv: str) -> None:
    assert run("replay.py", namesrv=namesrv).splitlines() == [
        "the group read 30 messages",
        "after the reset it read 15 again: second visit-0-0, second visit-0-1, ...",
    ]
    key = ("-t", "example_visits", "-k", "visit-0-3")
    found = run("-m", "mqproof", "admin", "queryMsgByKey", *key, namesrv=namesrv)
    assert len(re.findall(r"^[0-9A-F]{32} ", found, re.MULTILINE)) == 2


def test_messages_with_uncommitted_offsets_are_received_again(namesrv: str) -> None:
    lines = run("lite_pull.py", namesrv=namesrv).splitlines()
    assert lines[0] == "sent 20 messages"
    assert lines[1] == "the first run failed after 4 messages"
    assert sorted(lines[2:-1]) == [
        f"example_invoices@broker-a:{queue}: committed offset 5" for queue in range(4)
    ]
    assert lines[-1] == "the second run processed 20 messages"


def test_the_blocking_client_works_in_several_threads(namesrv: str) -> None:
    assert run("blocking.py", namesrv=namesrv).splitlines() == [
        "sent 9 messages from several threads",
        "a listener in threads consumed all of them",
        "the queues of the topic have 9 messages",
    ]
