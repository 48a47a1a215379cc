"""Tests the requests that each option of a command produces, at brokers with scripted answers."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.cli import app
from mqproof.impl.admin.commands import (
    accounts,
    brokers,
    exports,
    groups,
    messages,
    monitoring,
    name_servers,
    round_trips,
    topics,
)
from mqproof.impl.admin.list_files import read_topics
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.client.model import ClientError
from mqproof.impl.client.tracing.trace_records import Published, encode
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumedDirectly,
    ConsumeStats,
    QueueOffsets,
    QueueProgress,
    Table,
    TopicConfig,
    TopicStats,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import KvRequest, OffsetResponse, PullResponse, SendResponse
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import KEYS, Message
from mqproof.impl.store.files import record
from tests.impl.admin.site import OK, Answer, RoteBroker, Site, play, refusal
from tests.impl.admin.test_messages import found, stored

Work = Callable[[Admin], Awaitable[None]]

STATS = ConsumeStats(1.0, {ObjectKey(bodies.MessageQueue("b-a", 0, "T")): QueueProgress(9, 7, 5)})
ANSWERS: Mapping[RequestCode, Answer] = {
    **dict.fromkeys(RequestCode, OK),
    RequestCode.GET_BROKER_CONFIG: (0, {}, b"k=v\n"),
    RequestCode.GET_BROKER_RUNTIME_INFO: (0, {}, java_json.write(Table({"brokerVersionDesc": "V4_9_5"}))),
    RequestCode.GET_CONSUME_STATS: (0, {}, java_json.write(STATS)),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: refusal(ResponseCode.CONSUMER_NOT_ONLINE),
    RequestCode.GET_MAX_OFFSET: (0, headers.write(OffsetResponse(9)), b""),
    RequestCode.GET_TOPIC_STATS_INFO: (0, {}, java_json.write(TopicStats({}))),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: (0, {}, java_json.write(QueueOffsets({}))),
    RequestCode.QUERY_MESSAGE: refusal(ResponseCode.QUERY_NOT_FOUND),
}


@pytest.fixture
def work_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Work]:
    """Return what a command line would do, without doing it."""
    works: list[Work] = []
    modules = accounts, brokers, exports, groups, messages, monitoring, name_servers, round_trips, topics
    for module in modules:
        monkeypatch.setattr(module, "perform", lambda _, work: works.append(work))

    def parse(line: str, *more: str) -> Work:
        done = CliRunner().invoke(app, ["admin", *line.split(), *more, "-n", "h:1"])
        assert done.exit_code == 0, done.output
        return works.pop()

    return parse


def asked(work: Work, code: RequestCode, *, fails: bool = False) -> list[Command]:
    """Return the requests with this code that a broker receives.

    It has topics T, %RETRY%G and the cluster's.
    """

    async def scenario(site: Site) -> list[Command]:
        broker = await with_broker(site)
        try:
            await work(site.admin)
        except Exception:
            assert fails
        return [request for request in broker.asked if request.code == code]

    return play(scenario)


async def with_broker(site: Site) -> RoteBroker:
    return await site.add_broker("b-a", ANSWERS, "T", "%RETRY%G", "%DLQ%G", "C")


CASES: list[tuple[str, RequestCode, dict[str, str]]] = [
    (
        "updateTopic -c C -t T -r 3 -w 2 -p 4 -o true -u true -a +x=y",
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        {
            "topic": "T",
            "readQueueNums": "3",
            "writeQueueNums": "2",
            "perm": "4",
            "order": "true",
            "topicSysFlag": "1",
            "attributes": "+x=y",
        },
    ),
    (
        "updateTopic -c C -t T -s true",
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        {"topicSysFlag": "2", "perm": "6"},
    ),
    (
        "updateTopicPerm -c C -t T -p 2",
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        {"perm": "2", "readQueueNums": "16"},
    ),
    ("deleteTopic -c C -t T", RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}),
    ("deleteSubGroup -c C -g G -r true", RequestCode.DELETE_SUBSCRIPTIONGROUP, {"removeOffset": "true"}),
    ("deleteSubGroup -c C -g G", RequestCode.DELETE_SUBSCRIPTIONGROUP, {"removeOffset": "false"}),
    ("deleteSubGroup -c C -g G", RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "%RETRY%G"}),
    ("consumerProgress -g G -t T", RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G", "topic": "T"}),
    ("topicStatus -t Unrouted -c C", RequestCode.GET_TOPIC_STATS_INFO, {"topic": "Unrouted"}),
    ("consumerProgress -g Unrouted -c C", RequestCode.GET_CONSUME_STATS, {"consumerGroup": "Unrouted"}),
    (
        "resetOffsetByTime -g G -t T -s 123 -f false",
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        {"group": "G", "topic": "T", "timestamp": "123", "isForce": "false"},
    ),
    (
        "skipAccumulatedMessage -g G -t T",
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        {"timestamp": "-1", "isForce": "true"},
    ),
    (
        "cloneGroupOffset -s A -d B -t T",
        RequestCode.CLONE_GROUP_OFFSET,
        {"srcGroup": "A", "destGroup": "B", "topic": "T", "offline": "true"},
    ),
    ("cleanExpiredCQ -c C", RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, {}),
    ("deleteExpiredCommitLog -c C", RequestCode.DELETE_EXPIRED_COMMITLOG, {}),
    ("cleanUnusedTopic -c C", RequestCode.CLEAN_UNUSED_TOPIC, {}),
    ("createUser -c C -u someone -p secret", RequestCode.AUTH_CREATE_USER, {"username": "someone"}),
    ("updateUser -c C -u someone -t Super", RequestCode.AUTH_UPDATE_USER, {"username": "someone"}),
    ("deleteUser -c C -u someone", RequestCode.AUTH_DELETE_USER, {"username": "someone"}),
    ("listUser -c C -f some", RequestCode.AUTH_LIST_USER, {"filter": "some"}),
    (
        "createAcl -c C -s User:u -r Topic:T,Group:G -a Sub -d Allow",
        RequestCode.AUTH_CREATE_ACL,
        {"subject": "User:u"},
    ),
    (
        "updateAcl -c C -s User:u -r Topic:T -a Sub -d Allow",
        RequestCode.AUTH_UPDATE_ACL,
        {"subject": "User:u"},
    ),
    ("deleteAcl -c C -s User:u -r Topic:T", RequestCode.AUTH_DELETE_ACL, {"resource": "Topic:T"}),
    (
        "listAcl -c C -s User:u -r T",
        RequestCode.AUTH_LIST_ACL,
        {"subjectFilter": "u", "resourceFilter": "T"},
    ),
    ("resetOffsetByTime -g G -t T -s 1", RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, {"isForce": "true"}),
    ("getUser -c C -u someone", RequestCode.AUTH_GET_USER, {"username": "someone"}),
    ("getAcl -c C -s User:u", RequestCode.AUTH_GET_ACL, {"subject": "User:u"}),
    (
        "queryCq -t T -q 1 -i 4 -c 2 -g G",
        RequestCode.QUERY_CONSUME_QUEUE,
        {"queueId": "1", "index": "4", "count": "2", "consumerGroup": "G"},
    ),
    ("queryMsgByUniqueKey -t T -i K", RequestCode.QUERY_MESSAGE, {"key": "K", "_UNIQUE_KEY_QUERY": "true"}),
    (
        "queryMsgByOffset -t T -b b-a -i 1 -o 7",
        RequestCode.PULL_MESSAGE,
        {"queueId": "1", "queueOffset": "7", "maxMsgNums": "1"},
    ),
    ("getConsumerConfig -g G", RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {}),
]


@pytest.mark.parametrize(("line", "code", "fields"), CASES)
def test_options_become_fields_of_the_request(
    work_of: Callable[..., Work], line: str, code: RequestCode, fields: dict[str, str]
) -> None:
    request, *_ = asked(work_of(line), code, fails=True)  # the answers have no bodies
    assert fields.items() <= request.fields.items()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("brokerConsumeStats -o true -b", RequestCode.GET_BROKER_CONSUME_STATS),
        ("producer -b", RequestCode.GET_ALL_PRODUCER_INFO),
    ],
)
def test_a_command_about_one_broker_asks_that_broker(
    work_of: Callable[..., Work], line: str, code: RequestCode
) -> None:
    async def scenario(site: Site) -> list[dict[str, str]]:
        broker = await with_broker(site)
        with suppress(ClientError):  # the answer has no body
            await work_of(line, str(broker.address))(site.admin)
        return broker.fields_of(code)

    (fields,) = play(scenario)
    assert fields.get("isOrder", "true") == "true"


def test_the_shares_that_clients_would_have_are_shown(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(site: Site) -> None:
        await with_broker(site)
        await work_of("allocateMQ -t T -i c2,c1")(site.admin)

    play(scenario)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:4]] == ["c1", "c1"]


def test_a_search_by_key_respects_its_bounds(work_of: Callable[..., Work]) -> None:
    work = work_of("queryMsgByKey -t T -k key -m 3 -b 5 -e 9 -p T")
    (request,) = asked(work, RequestCode.QUERY_MESSAGE, fails=True)  # nothing is found
    expected = {
        "topic": "T",
        "key": "key",
        "maxNum": "3",
        "beginTimestamp": "5",
        "endTimestamp": "9",
        "indexType": "T",
    }
    assert expected.items() <= request.fields.items()


@pytest.mark.parametrize(("letters", "language"), [("", "PYTHON"), ("-c", "CPP")])
def test_a_reset_for_cpp_clients_has_their_language(
    work_of: Callable[..., Work], letters: str, language: str
) -> None:
    work = work_of(f"resetOffsetByTime -g G -t T -s 1 {letters}")
    (request,) = asked(work, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
    assert request.language == language


def test_a_single_queue_is_reset_to_the_given_offset(work_of: Callable[..., Work]) -> None:
    async def scenario(site: Site) -> list[dict[str, str]]:
        broker = await with_broker(site)
        await work_of(f"resetOffsetByTime -g G -t T -s 1 -b {broker.address} -q 1 -o 4")(site.admin)
        return broker.fields_of(RequestCode.UPDATE_CONSUMER_OFFSET)

    (fields,) = play(scenario)
    assert {"consumerGroup": "G", "queueId": "1", "commitOffset": "4"}.items() <= fields.items()


def test_a_group_is_created_with_the_given_options(work_of: Callable[..., Work]) -> None:
    letters = "-s false -m true -d true -q 3 -r 5 -i 1 -w 2 -a false -o true --attributes +x=y -p {}"
    work = work_of(f"updateSubGroup -c C -g G {letters}")
    (request,) = asked(work, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
    assert json.loads(request.body) == {
        "groupName": "G",
        "consumeEnable": False,
        "consumeFromMinEnable": True,
        "consumeBroadcastEnable": True,
        "retryQueueNums": 3,
        "retryMaxTimes": 5,
        "brokerId": 1,
        "whichBrokerWhenConsumeSlowly": 2,
        "notifyConsumerIdsChangedEnable": False,
        "consumeMessageOrderly": True,
        "attributes": {"+x": "y"},
        "groupRetryPolicy": {},
    }


def test_an_order_is_sent_to_every_name_server(work_of: Callable[..., Work]) -> None:
    async def scenario(site: Site) -> list[str]:
        await with_broker(site)
        await work_of("updateTopic -c C -t T -w 2 -o true")(site.admin)
        header = KvRequest("ORDER_TOPIC_CONFIG", "T")
        answers = [await site.ask(address, RequestCode.GET_KV_CONFIG, header) for address in site.addresses]
        return [answer.fields["value"] for answer in answers]

    assert play(scenario) == ["b-a:2"] * 2


@pytest.mark.parametrize(("letters", "count"), [("", 1), ("-a true", 2)])
def test_a_setting_is_changed_at_slaves_on_request(
    work_of: Callable[..., Work], letters: str, count: int
) -> None:
    async def scenario(site: Site) -> int:
        replicas = [await site.add_broker("b-a", ANSWERS, id_=id_) for id_ in (0, 1)]
        await work_of(f"updateBrokerConfig -c C -k k -v v {letters}")(site.admin)
        return sum(len(each.bodies_of(RequestCode.UPDATE_BROKER_CONFIG)) for each in replicas)

    assert play(scenario) == count


SHOWN: list[tuple[str, list[str], list[str]]] = [
    ("topicList", ["T"], ["cluster"]),
    ("topicList -c", ["cluster", "consumer groups"], []),
    ("topicRoute -t T", ["write queues"], ["total"]),
    ("topicRoute -t T -l", ["total"], []),
    ("clusterList", ["V4_9_5"], ["in yesterday"]),
    ("clusterList -m", ["in yesterday"], ["V4_9_5"]),
    ("consumerProgress", ["members"], []),
    ("consumerProgress -g G", ["broker offset", "2 behind"], ["client"]),
    ("consumerProgress -g G -s true", ["client", "2 behind"], []),
    ("getBrokerConfig -c C", ["k  ", "v"], []),
    ("brokerStatus -c C", ["brokerVersionDesc"], []),
    ("getNamesrvConfig", ["orderMessageEnable"], []),
]


@pytest.mark.parametrize(("line", "there", "not_there"), SHOWN)
def test_options_select_the_information_shown(
    work_of: Callable[..., Work],
    capsys: pytest.CaptureFixture[str],
    line: str,
    there: list[str],
    not_there: list[str],
) -> None:
    work = work_of(line)

    async def scenario(site: Site) -> None:
        groups_of_t: Answer = (0, {}, java_json.write(bodies.GroupList(group_list=["G"])))
        answers = {**ANSWERS, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: groups_of_t}
        await site.add_broker("b-a", answers, "T", "%RETRY%G", "C")
        await work(site.admin)

    play(scenario)
    shown = capsys.readouterr().out
    assert [text for text in there if text not in shown] == []
    assert [text for text in not_there if text in shown] == []


def test_an_unknown_cluster_is_not_listed(work_of: Callable[..., Work]) -> None:
    async def scenario(site: Site) -> None:
        await with_broker(site)
        with pytest.raises(Exception, match="no broker of Nope"):
            await work_of("clusterList -c Nope")(site.admin)

    play(scenario)


def test_a_broker_without_status_is_reported(work_of: Callable[..., Work]) -> None:
    async def scenario(site: Site) -> None:
        answers = {RequestCode.GET_BROKER_RUNTIME_INFO: refusal(ResponseCode.SYSTEM_ERROR)}
        broker = await site.add_broker("b-a", answers)
        with pytest.raises(Exception, match=f"no status from {broker.address}"):
            await work_of("clusterList")(site.admin)

    play(scenario)


@pytest.mark.parametrize(("result", "is_good"), [("CR_SUCCESS", True), ("CR_LATER", False)])
def test_the_result_of_direct_consumption_decides_the_exit_code(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str], result: str, is_good: bool
) -> None:
    made = ConsumedDirectly(consume_result=result, order=False, remark="why", spent_time_mills=3)

    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a", {RequestCode.CONSUME_MESSAGE_DIRECTLY: (0, {}, java_json.write(made))}
        )
        broker.answers[RequestCode.VIEW_MESSAGE_BY_ID] = found(stored("k", host=broker.address))
        (example,) = read_records(stored("k", host=broker.address))
        await work_of(f"queryMsgById -i {example.offset_message_id} -g G -d c1")(site.admin)

    if is_good:
        play(scenario)
        assert capsys.readouterr().out == "c1: CR_SUCCESS after 3 ms\n"
    else:
        with pytest.raises(ClientError, match="c1: CR_LATER after 3 ms: why"):
            play(scenario)


@pytest.mark.parametrize(
    ("letters", "last_words"),
    [
        ("", ["k1", "k2", "k3"]),
        ("-b 2000 -e 3000", ["k2", "k3"]),
        ("-e 1999", ["k1"]),
        ("-s b", []),
        ("-d false", ["more"] * 3),  # of the keys
        ("-c utf-16-be", ["\u6b31", "\u6b32", "\u6b33"]),
    ],
)
def test_print_msg_prints_the_messages_of_a_topic(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str], letters: str, last_words: list[str]
) -> None:
    work = work_of(f"printMsg -t T {letters}")
    records = b"".join(stored(f"k{n + 1}", offset=n, time_ms=1000 * (n + 1)) for n in range(3))

    async def scenario(site: Site) -> None:
        answers = {
            RequestCode.GET_MIN_OFFSET: (0, headers.write(OffsetResponse(0)), b""),
            RequestCode.GET_MAX_OFFSET: (0, headers.write(OffsetResponse(3)), b""),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: (0, headers.write(OffsetResponse(0)), b""),
            RequestCode.PULL_MESSAGE: (0, headers.write(PullResponse(0, 3, 0, 3)), records),
        }
        await site.add_broker("b-a", answers, TopicConfig("T", read_queue_nums=1))
        await work(site.admin)

    play(scenario)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == last_words


def test_one_queue_is_printed_and_its_messages_are_counted_by_tag(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    work = work_of("printMsgByQueue -t T -a b-a -i 0 -p true -d true -f true")
    records = b"".join(stored(f"k{n + 1}", offset=n, time_ms=1000 * (n + 1)) for n in range(3))

    async def scenario(site: Site) -> list[str]:
        answers = {
            RequestCode.GET_MIN_OFFSET: (0, headers.write(OffsetResponse(0)), b""),
            RequestCode.GET_MAX_OFFSET: (0, headers.write(OffsetResponse(3)), b""),
            RequestCode.PULL_MESSAGE: (0, headers.write(PullResponse(0, 3, 0, 3)), records),
        }
        broker = await site.add_broker("b-a", answers, TopicConfig("T", read_queue_nums=2))
        await work(site.admin)
        return [fields["queueId"] for fields in broker.fields_of(RequestCode.PULL_MESSAGE)]

    assert play(scenario) == ["0"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["b-a:0"] * 3
    assert lines[-1].split() == ["a", "3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("printMsgByQueue -t T -a b-a -i 0", "give -p true, -f true, or both"),
        ("sendMessage -t T -p x -b b-a", "-b and -i must be given together"),
        ("sendMessage -t T! -p x", "the topic 'T!' has a character other than"),
        ("consumeMessage -t T -b b-a", "-b and -i must be given together"),
        ("consumeMessage -t T -o 3", "-o needs -b and -i"),
        ("exportMetadata -b h:1 -t -g", "give either -t or -g"),
        ("exportMetadata -t", "give either -b HOST:PORT or -c CLUSTER"),
        ("updateOrderConf -t T -m put", "-m put needs -v"),
        ("updateOrderConf -t T -m get -v b:1", "-v is only for -m put, not get"),
        ("updateOrderConf -t T -m set", "-m: 'set', put, get or delete expected"),
        ("updateOrderConf -t T -m put -v b-a", "-v: 'b-a', BROKER:NUMBER expected"),
        ("setConsumeMode -c C -g G -t T -m PUSH", "-m: 'PUSH', PULL or POP expected"),
        ("updateTopicList -c C -f /nowhere", "-f: /nowhere: No such file or directory"),
    ],
)
def test_a_use_without_effect_is_refused_in_one_line(line: str, message: str) -> None:
    done = CliRunner().invoke(app, ["admin", *line.split(), "-n", "h:1"])
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_message_is_sent_to_the_given_queue_with_its_keys(work_of: Callable[..., Work]) -> None:
    work = work_of("sendMessage -t T -p hello -c A -b b-a -i 3 -k", "k1 k2")
    (request,) = asked(work, RequestCode.SEND_MESSAGE_V2, fails=True)  # the answer has no fields
    assert (request.body, request.fields["b"], request.fields["e"]) == (b"hello", "T", "3")
    assert "KEYS\x01k1 k2" in request.fields["i"]


def test_the_traces_of_a_message_are_found_by_its_id(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    trace = encode(Published(1, "R", "PG", "T", ("m1",), None, None, "h:1", 5, 7, 0, "o", True))
    other = encode(Published(1, "R", "Other", "T", ("m2",), None, None, "h:1", 5, 7, 0, "o", True))
    message = Message("Traces", (trace + other + "Recall\x01").encode(), {KEYS: "m1 m2"})
    header = {"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"}

    async def scenario(site: Site) -> None:
        body = bytes(record.encode(message))
        answers = {RequestCode.QUERY_MESSAGE: (0, header, body)}
        await site.add_broker("b-a", answers, "Traces")
        await work_of("queryMsgTraceById -i m1 -t Traces")(site.admin)
        with pytest.raises(ClientError, match="no trace of message m3 in topic Traces"):
            await work_of("queryMsgTraceById -i m3 -t Traces")(site.admin)

    play(scenario)
    printed = capsys.readouterr().out
    assert "SEND_OK" in printed
    assert "Other" not in printed


def test_bodies_are_decoded_with_the_given_character_set(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {})
        message = stored("caf\u00e9", host=broker.address)
        broker.answers[RequestCode.VIEW_MESSAGE_BY_ID] = found(message)
        (example,) = read_records(message)
        await work_of(f"queryMsgById -i {example.offset_message_id} -f latin-1")(site.admin)

    play(scenario)
    assert capsys.readouterr().out.endswith("caf\u00c3\u00a9\n")


def test_users_and_their_permissions_are_sent_in_the_body(work_of: Callable[..., Work]) -> None:
    (new,) = asked(work_of("createUser -c C -u someone -p secret -t Normal"), RequestCode.AUTH_CREATE_USER)
    assert java_json.read(bodies.User, new.body) == bodies.User("someone", "secret", "Normal")
    (same,) = asked(work_of("updateUser -c C -u someone -t Super"), RequestCode.AUTH_UPDATE_USER)
    assert java_json.read(bodies.User, same.body) == bodies.User("someone", user_type="Super")
    line = "createAcl -c C -s User:u -r Topic:T,Group:G -a Pub,Sub -d Allow"
    (policies,) = asked(work_of(line), RequestCode.AUTH_CREATE_ACL)
    (policy,) = java_json.read(bodies.SubjectPolicies, policies.body).policies
    assert [(each.resource, each.actions, each.decision) for each in policy.entries] == [
        ("Topic:T", ["Pub", "Sub"], "Allow"),
        ("Group:G", ["Pub", "Sub"], "Allow"),
    ]


def test_permissions_are_copied_to_another_broker(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    def of(subject: str) -> bodies.SubjectPolicies:
        entry = bodies.PolicyEntry("Topic:T", ["Pub"], "Allow")
        return bodies.SubjectPolicies(subject, [bodies.Policy([entry])])

    async def scenario(site: Site) -> tuple[list[Command], list[Command]]:
        listed: Answer = (0, {}, java_json.write([of("User:a"), of("User:b")]))
        one: Answer = (0, {}, java_json.write(of("User:c")))
        source = await site.add_broker(
            "b-a", {**ANSWERS, RequestCode.AUTH_LIST_ACL: listed, RequestCode.AUTH_GET_ACL: one}
        )
        known: Answer = (0, {}, java_json.write([of("User:b")]))
        target = await site.add_broker("b-b", {**ANSWERS, RequestCode.AUTH_LIST_ACL: known})
        both = f"copyAcl -f {source.address} -t {target.address}"
        await work_of(both)(site.admin)
        await work_of(f"{both} -s User:c")(site.admin)
        with pytest.raises(ClientError, match="has no permissions of any user"):
            await work_of(f"copyAcl -f {(await with_broker(site)).address} -t {target.address}")(site.admin)
        made = [
            [request for request in target.asked if request.code == code]
            for code in (RequestCode.AUTH_CREATE_ACL, RequestCode.AUTH_UPDATE_ACL)
        ]
        return made[0], made[1]

    created, updated = play(scenario)
    assert [request.fields["subject"] for request in created] == ["User:a", "User:c"]
    assert [request.fields["subject"] for request in updated] == ["User:b"]
    assert java_json.read(bodies.SubjectPolicies, created[0].body) == of("User:a")
    assert capsys.readouterr().out.count("are copied from") == 3


def test_topics_and_groups_of_a_file_are_sent_in_one_request(
    work_of: Callable[..., Work], tmp_path: Path
) -> None:
    topics_file, groups_file = tmp_path / "topics.json", tmp_path / "groups.json"
    topics_file.write_text('[{"topicName": "A", "perm": 4}, {"topicName": "B"}]')
    groups_file.write_text('[{"groupName": "G", "retryMaxTimes": 3}]')
    (request,) = asked(
        work_of(f"updateTopicList -c C -f {topics_file}"), RequestCode.UPDATE_AND_CREATE_TOPIC_LIST
    )
    assert java_json.read(bodies.TopicConfigList, request.body).topic_config_list == [
        TopicConfig("A", perm=4),
        TopicConfig("B"),
    ]
    (request,) = asked(
        work_of(f"updateSubGroupList -c C -f {groups_file}"),
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    )
    (group,) = java_json.read(bodies.SubscriptionGroupList, request.body).group_config_list
    assert (group.group_name, group.retry_max_times) == ("G", 3)


def test_the_mode_of_a_group_is_sent_in_the_body(work_of: Callable[..., Work]) -> None:
    work = work_of("setConsumeMode -c C -g G -t T -m POP -q 2")
    (request,) = asked(work, RequestCode.SET_MESSAGE_REQUEST_MODE)
    assert java_json.read(bodies.RequestMode, request.body) == bodies.RequestMode("G", "T", "POP", 2)


def test_the_order_of_a_topic_is_put_shown_and_deleted(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(site: Site) -> None:
        await work_of("updateOrderConf -t T -m put -v", "b-b:2; b-a:4")(site.admin)
        await work_of("updateOrderConf -t T -m get")(site.admin)
        await work_of("updateOrderConf -t T -m delete")(site.admin)
        with pytest.raises(ClientError, match="topic T has no order"):
            await work_of("updateOrderConf -t T -m get")(site.admin)

    play(scenario)
    assert capsys.readouterr().out.splitlines() == [
        *["T: b-a:4;b-b:2"] * 2,
        "T: the order is deleted",
    ]


@pytest.mark.parametrize(
    ("letters", "last_words", "first"),
    [
        ("", ["k1", "k2", "k3"], "0"),
        ("-c 2", ["k1", "k2"], "0"),
        ("-s 2000 -e 2999 -g G", ["k2"], "0"),
        ("-b b-a -i 0 -o 1 -c 9", ["k2", "k3"], "1"),
    ],
)
def test_messages_are_read_without_a_change_of_offsets(
    work_of: Callable[..., Work],
    capsys: pytest.CaptureFixture[str],
    letters: str,
    last_words: list[str],
    first: str,
) -> None:
    work = work_of(f"consumeMessage -t T {letters}")
    records = b"".join(stored(f"k{n + 1}", offset=n, time_ms=1000 * (n + 1)) for n in range(int(first), 3))

    async def scenario(site: Site) -> None:
        answers = {
            **ANSWERS,
            RequestCode.GET_MIN_OFFSET: (0, headers.write(OffsetResponse(0)), b""),
            RequestCode.GET_MAX_OFFSET: (0, headers.write(OffsetResponse(3)), b""),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: (0, headers.write(OffsetResponse(0)), b""),
            RequestCode.PULL_MESSAGE: (0, headers.write(PullResponse(0, 3, 0, 3)), records),
        }
        broker = await site.add_broker("b-a", answers, TopicConfig("T", read_queue_nums=1))
        await work(site.admin)
        (fields,) = broker.fields_of(RequestCode.PULL_MESSAGE)
        assert fields["queueOffset"] == first
        assert fields["consumerGroup"] == ("G" if "-g" in letters else "TOOLS_CONSUMER")
        assert broker.fields_of(RequestCode.UPDATE_CONSUMER_OFFSET) == []
        with pytest.raises(ClientError, match="no such message in topic T"):
            await work_of("consumeMessage -t T -s 9000")(site.admin)

    play(scenario)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == last_words


SENT: Answer = (0, headers.write(SendResponse("ID", 0, 7)), b"")


def test_the_result_and_the_time_of_each_send_are_shown(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.SEND_MESSAGE_V2: SENT}, "T", "b-a")
        await work_of("checkMsgSendRT -t T -a 2 -s 3")(site.admin)
        await work_of("sendMsgStatus -b b-a -c 2 -s 3")(site.admin)
        assert broker.bodies_of(RequestCode.SEND_MESSAGE_V2) == [b"aaa"] * 4
        broker.answers[RequestCode.SEND_MESSAGE_V2] = refusal(ResponseCode.NO_PERMISSION)
        for line in ("checkMsgSendRT -t T -a 2", "sendMsgStatus -b b-a -c 2"):
            with pytest.raises(ClientError, match="2 of 2 messages are not known to be stored"):
                await work_of(line)(site.admin)

    play(scenario)
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in shown[2:4]] == [["b-a", "0", "SEND_OK"], ["b-a", "1", "SEND_OK"]]
    assert shown[5].endswith(" ms on average")
    assert [line.split()[0] for line in shown[6:8]] == ["SEND_OK", "SEND_OK"]
    assert "NO_PERMISSION" in "".join(shown[8:])


@pytest.mark.parametrize(("letters", "rows"), [("", 2), ("-c C", 1), ("-p true -m here", 2)])
def test_the_times_of_all_brokers_are_measured_until_interrupted(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str], letters: str, rows: int
) -> None:
    work = work_of(f"clusterRT -a 3 -i 10 {letters}")

    async def scenario(site: Site) -> None:
        await site.add_broker("b-a", {RequestCode.SEND_MESSAGE_V2: SENT}, "b-a")
        await site.add_broker("b-b", {}, "b-b", cluster="D")  # its answer has another code
        with suppress(TimeoutError):
            async with asyncio.timeout(15):
                await work(site.admin)

    play(scenario)
    shown = capsys.readouterr().out.splitlines()
    if "-p" in letters:
        assert [line.split("|")[1:4] for line in shown] == [["here", "C", "b-a"], ["here", "D", "b-b"]] * 2
        assert [line.split("|")[4] == "-" for line in shown] == [False, True] * 2
        return
    found = [line.split() for line in shown if line.startswith(("C ", "D "))]
    assert [(*row[:2], *row[3:]) for row in found] == [
        ("C", "b-a", "3", "0"),
        ("D", "b-b", "0", "3"),
    ][:rows] * 2


def test_what_is_wrong_is_reported_until_interrupted(
    work_of: Callable[..., Work], capsys: pytest.CaptureFixture[str]
) -> None:
    work = work_of("startMonitoring -i 10")

    async def scenario(site: Site) -> None:
        broker = await with_broker(site)
        asyncio.get_running_loop().call_later(5, broker.answers.update, {RequestCode.GET_CONSUME_STATS: GOOD})
        with suppress(TimeoutError):
            async with asyncio.timeout(15):
                await work(site.admin)

    play(scenario)
    bad, good = capsys.readouterr().out.splitlines()
    assert " G T: 2 messages behind" in bad
    assert good.endswith(" nothing is wrong, of 1 groups in all")


GOOD: Answer = (0, {}, java_json.write(ConsumeStats(1.0, {})))


def test_metadata_and_settings_are_written_to_files(tmp_path: Path) -> None:
    works: list[tuple[object, Work]] = []
    patch = pytest.MonkeyPatch()
    patch.setattr(exports, "perform", lambda site, work: works.append((site, work)))
    lines = [
        "exportMetadata -c C",
        "exportMetadata -c C -t -s",
        "exportMetadata -c C -g",
        "exportConfigs -c C",
        "exportMetrics -c C",
    ]
    with patch.context():
        for line in lines:
            done = CliRunner().invoke(app, ["admin", *line.split(), "-f", str(tmp_path), "-n", "h:1"])
            assert done.exit_code == 0, done.output
    patch.undo()

    async def scenario(site: Site) -> None:
        table = bodies.AllTopics(bodies.DataVersion(1), {name: TopicConfig(name) for name in ("T", "%DLQ%G")})
        of_groups = bodies.SubscriptionGroups(bodies.DataVersion(1), {"G": bodies.SubscriptionGroup()})
        answers = {
            **ANSWERS,
            RequestCode.GET_ALL_TOPIC_CONFIG: (0, {}, java_json.write(table)),
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: (0, {}, java_json.write(of_groups)),
        }
        await site.add_broker("b-a", answers)
        for _, work in works:
            await work(site.admin)

    play(scenario)
    found = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert sorted(found) == [
        "configs.json",
        "metadata.json",
        "metrics.json",
        "subscriptionGroup.json",
        "topic.json",
    ]
    metadata = found["metadata.json"]
    assert set(metadata) == {"exportTime", "topicConfigTable", "subscriptionGroupTable"}
    assert list(metadata["topicConfigTable"]) == ["T"]
    assert set(found["topic.json"]) == {"exportTime", "topicConfigTable"}
    assert list(found["topic.json"]["topicConfigTable"]) == ["%DLQ%G", "T"]
    assert set(found["subscriptionGroup.json"]) == {"exportTime", "subscriptionGroupTable"}
    assert found["configs.json"]["clusterScale"]["masterBrokerSize"] == 1
    assert read_topics(str(tmp_path / "topic.json")) == [TopicConfig("%DLQ%G"), TopicConfig("T")]


def test_a_password_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[Work] = []
    monkeypatch.setattr(accounts, "perform", lambda _, work: works.append(work))
    line = ["admin", "createUser", "-c", "C", "-u", "someone", "-p", "-", "-n", "h:1"]
    assert CliRunner().invoke(app, line, input="from stdin\n").exit_code == 0
    (request,) = asked(works.pop(), RequestCode.AUTH_CREATE_USER)
    assert java_json.read(bodies.User, request.body).password == "from stdin"
