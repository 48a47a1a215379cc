"""Tests a group against a peer that lies: terms far ahead, entries that contradict committed ones."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mqproof.impl.dledger import wire
from mqproof.impl.dledger.codes import PushType, RequestCode, ResponseCode, Vote
from mqproof.impl.dledger.limits import TERM_JUMP_MAX, TERM_MAX
from mqproof.impl.dledger.node import Node
from mqproof.impl.dledger.rpc_bodies import (
    NORMAL,
    Entry,
    HeartBeatRequest,
    Message,
    PushRequest,
    PushResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import ResponseCode as FrameCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.java_json import BodyError
from tests.impl.dledger.test_node import NAMES, Site, _bodies, _play


async def _send(site: Site, name: str, code: RequestCode, body: bytes) -> Command:
    """Send a frame whose body no encoder of ours would write."""
    client = RemotingClient(site.network)
    try:
        return await client.invoke(site.addresses[name], new_request(code, body=body), 30.0)
    finally:
        await client.close()


def _vote(member: str, candidate: str, term: int) -> bytes:
    """Return the body of a vote request with the best possible log."""
    return (
        f'{{"group":"g","remoteId":"{member}","localId":"{candidate}","term":{term},'
        f'"ledgerEndIndex":1000000,"ledgerEndTerm":{min(term, 1 << 40)}}}'
    ).encode()


async def _after_votes(site: Site, term: int) -> tuple[list[int], list[bytes]]:
    """Send a vote request with the term to all members; restart them; return their terms and entries."""
    await site.append(b"one")
    for name in NAMES:
        candidate = next(other for other in NAMES if other != name)
        with suppress(RemotingError):  # a follower that hears its leader does not answer
            await _send(site, name, RequestCode.VOTE, _vote(name, candidate, term))
    await site.append(b"two")
    for name in NAMES:
        await site.stop(name)
    for name in NAMES:
        await site.start(name)
    await site.append(b"three")
    leader = await site.leader()
    return [node.member.core.state.term for node in site.nodes.values()], _bodies(leader)


@pytest.mark.parametrize("term", [1 << 70, (1 << 63) - 1, TERM_MAX + 1, TERM_MAX, 1 << 40])
def test_a_vote_with_a_term_far_ahead_does_not_stop_the_group(term: int) -> None:
    async def scenario(site: Site) -> tuple[list[int], list[bytes]]:
        async with asyncio.timeout(120):
            return await _after_votes(site, term)

    terms, bodies = _play(scenario)
    assert max(terms) < 100
    assert bodies == [b"one", b"two", b"three"]


def test_a_vote_with_a_term_that_is_near_is_an_election() -> None:
    async def scenario(site: Site) -> tuple[list[int], list[bytes]]:
        async with asyncio.timeout(120):
            return await _after_votes(site, 1000)

    terms, bodies = _play(scenario)
    assert min(terms) >= 1000
    assert bodies == [b"one", b"two", b"three"]


def test_a_term_too_far_ahead_is_refused_in_every_request() -> None:
    async def scenario(site: Site) -> list[tuple[int, int]]:
        await site.append(b"one")
        leader = await site.leader()
        member = next(name for name in NAMES if name != leader.config.self_id)
        before = site.nodes[member].member.core.state.term
        common = ("g", member, leader.config.self_id, None, before + TERM_JUMP_MAX + 1)
        vote = await site.ask(member, VoteRequest(*common, ledger_end_index=9, ledger_end_term=9))
        assert isinstance(vote, VoteResponse)
        assert vote.vote_result is Vote.REJECT_UNEXPECTED_LEADER
        answers = [
            vote,
            await site.ask(member, HeartBeatRequest(*common)),
            await site.ask(member, PushRequest(*common)),
        ]
        return [(answer.code, answer.term - before) for answer in answers]

    assert _play(scenario) == [(ResponseCode.UNEXPECTED_ARGUMENT, 0)] * 3


Lie = Callable[[Node, Node], PushRequest]


def _push(leader: Node, follower: Node, before: int, *entries: Entry, **fields: Any) -> PushRequest:
    """Return an APPEND that claims to come from the leader."""
    state = leader.member.core.state
    return PushRequest(
        "g",
        follower.config.self_id,
        leader.config.self_id,
        leader.config.self_id,
        state.term,
        type=PushType.APPEND,
        pre_log_index=before,
        pre_log_term=state.terms.at(before) or 0,
        batch_entry=entries,
        **fields,
    )


def _contradicts_a_committed_entry(leader: Node, follower: Node) -> PushRequest:
    ledger, commit = leader.member.ledger, follower.member.core.state.commit
    real = ledger.read(commit)
    lie = Entry(NORMAL, real.size, commit, real.term + 1, real.pos, body=real.body)
    push = _push(leader, follower, commit - 1, lie)
    return _with_term(push, real.term + 1)


def _has_another_position(leader: Node, follower: Node) -> PushRequest:
    end = leader.member.ledger.end_index
    term = leader.member.core.state.term
    return _push(leader, follower, end, Entry(NORMAL, 49, end + 1, term, 1 << 40, body=b"x"))


def _does_not_fit_a_segment(leader: Node, follower: Node) -> PushRequest:
    ledger, term = leader.member.ledger, leader.member.core.state.term
    body = b"x" * (1 << 16)
    entry = Entry(NORMAL, 48 + len(body), ledger.end_index + 1, term, ledger.end_pos, body=body)
    return _push(leader, follower, ledger.end_index, entry)


def _has_another_size(leader: Node, follower: Node) -> PushRequest:
    ledger, term = leader.member.ledger, leader.member.core.state.term
    entry = Entry(NORMAL, 50, ledger.end_index + 1, term, ledger.end_pos, body=b"x")
    return _push(leader, follower, ledger.end_index, entry)


def _with_term(push: PushRequest, term: int) -> PushRequest:
    return replace(push, term=term)


@pytest.mark.parametrize(
    "lie",
    [_contradicts_a_committed_entry, _has_another_position, _does_not_fit_a_segment, _has_another_size],
)
def test_a_push_that_cannot_be_accepted_is_refused_and_the_member_stays(
    lie: Lie, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> tuple[int, list[bytes], Exception | None]:
        for body in (b"one", b"two", b"three"):
            await site.append(body)
        await asyncio.sleep(3)  # the followers receive the committed index
        leader = await site.leader()
        follower = next(node for node in site.nodes.values() if node is not leader)
        push = lie(leader, follower)
        if push.term != follower.member.core.state.term:
            beat = HeartBeatRequest(*(push.group, push.remote_id, push.local_id, push.leader_id, push.term))
            await site.ask(follower.config.self_id, beat)  # not ready: enters the term
            await site.ask(follower.config.self_id, beat)
        answer = await site.ask(follower.config.self_id, push)
        assert isinstance(answer, PushResponse)
        await site.append(b"four")
        while _bodies(follower) != _bodies(await site.leader()):
            await asyncio.sleep(0.1)
        return answer.code, _bodies(follower), follower.failure

    with caplog.at_level(logging.WARNING):
        code, bodies, failure = _play(scenario)
    assert code == ResponseCode.UNEXPECTED_ARGUMENT
    assert bodies == [b"one", b"two", b"three", b"four"]
    assert failure is None
    assert sum("refused a push" in record.message for record in caplog.records) == 1


def test_a_restarted_member_keeps_the_entries_that_it_knows_to_be_committed() -> None:
    """`known_committed` is what the broker's queues prove, because the committed index is not on disk."""

    async def scenario(site: Site) -> tuple[int, list[bytes]]:
        for body in (b"one", b"two", b"three"):
            await site.append(body)
        leader = await site.leader()
        for name in NAMES:
            if name != leader.config.self_id:
                await site.stop(name)
        ledger = leader.member.ledger
        end = ledger.end_index
        await site.stop(leader.config.self_id)
        name = leader.config.self_id
        liar = next(other for other in NAMES if other != name)
        await site.start(name)
        member = site.nodes[name].member
        member.core.state.known_committed = end
        term = member.core.state.term + 5
        beat = HeartBeatRequest("g", name, liar, liar, term)
        await site.ask(name, beat)
        await site.ask(name, beat)
        lie = Entry(NORMAL, 49, 0, term, 0, body=b"x")
        push = PushRequest("g", name, liar, liar, term, batch_entry=(lie,))
        return (await site.ask(name, push)).code, _bodies(site.nodes[name])

    assert _play(scenario) == (ResponseCode.UNEXPECTED_ARGUMENT, [b"one", b"two", b"three"])


def test_a_follower_cannot_acknowledge_entries_that_it_was_not_sent() -> None:
    async def scenario(site: Site) -> int:
        await site.append(b"one")
        leader = await site.leader()
        core, now = leader.member.core, leader._now_ms()
        for name in core.config.peers:
            push = PushRequest("g", name, core.config.self_id, core.config.self_id, core.state.term)
            lie = PushResponse("g", core.config.self_id, name, None, core.state.term, index=1 << 40)
            core.answered(push, lie, now)
        return max(core.state.terms.end - core._leading.lag(name) for name in core.config.peers)

    assert _play(scenario) <= 10


FIELDS: dict[RequestCode, dict[str, tuple[str, ...]]] = {
    RequestCode.VOTE: {
        "ledgerEndIndex": ("-2", str(1 << 60), "1.5", "null", '"x"'),
        "ledgerEndTerm": ("-2", str(TERM_MAX + 1), str(1 << 70)),
    },
    RequestCode.HEART_BEAT: {
        "term": ("-2", str(TERM_MAX + 1), str((1 << 63) - 1), str(1 << 70), "9" * 5000),
        "group": ('"' + "g" * 256 + '"', "7"),
        "remoteId": ('"' + "n" * 256 + '"', "null"),
        "localId": ('"' + "n" * 256 + '"', "[]"),
        "leaderId": ('"' + "n" * 256 + '"', "{}"),
        "code": ("-2", str(1 << 31), '"x"'),
    },
    RequestCode.PUSH: {
        "type": ('"FORGET"', "1", "null"),
        "preLogIndex": ("-2", str(1 << 60)),
        "preLogTerm": ("-2", str(TERM_MAX + 1)),
        "commitIndex": ("-2", str(1 << 60)),
        "keptByAll": ("-2", str(1 << 60)),
        "totalSize": ("-1", str(1 << 31)),
        "count": ("-1", str(1 << 31)),
        "batchEntry": ("[" + ",".join(['{"magic":1,"size":48,"index":0,"term":1,"pos":0}'] * 10_001) + "]",),
    },
    RequestCode.LEADERSHIP_TRANSFER: {
        "transferId": ('"' + "n" * 256 + '"',),
        "transfereeId": ('"' + "n" * 256 + '"',),
        "takeLeadershipLedgerIndex": ("-2", str(1 << 60)),
    },
    RequestCode.GET: {"beginIndex": ("-2", str(1 << 60)), "maxSize": ("-1", str(1 << 31))},
    RequestCode.METADATA: {},
    RequestCode.APPEND: {"body": ('"!"', "7")},
}
"""Values beyond the limit of each field of each request. The fields that all have are under HEART_BEAT."""

ENTRY: dict[str, tuple[str, ...]] = {
    "magic": ("0", "3", "-1", str(1 << 31)),
    "size": ("47", str(1 << 31)),
    "index": ("-1", str(1 << 60)),
    "term": ("0", str(TERM_MAX + 1)),
    "pos": ("-1", str(1 << 63)),
    "channel": (str(1 << 31), str(-(1 << 31) - 1)),
    "chainCrc": (str(1 << 31), str(-(1 << 31) - 1)),
    "bodyCrc": (str(1 << 31), str(-(1 << 31) - 1)),
    "body": ('"!"', "7"),
}


def _message(request: RequestCode, **values: str) -> Command:
    fields = {"group": '"g"', "remoteId": '"n0"', "localId": '"n1"', **values}
    text = ",".join(f'"{name}":{value}' for name, value in fields.items())
    return new_request(request, body=f"{{{text}}}".encode())


def _camel(kind: type[Message] | type[Entry]) -> set[str]:
    return set(kind.__struct_encode_fields__)


def test_the_table_of_this_test_names_every_field_of_every_request() -> None:
    shared = set(FIELDS[RequestCode.HEART_BEAT])
    for code, kind in wire.REQUESTS.items():
        own = set(FIELDS[RequestCode(code)])
        assert _camel(kind) == own | shared, kind.__name__
    assert _camel(Entry) == set(ENTRY)


@pytest.mark.parametrize("code", list(FIELDS))
def test_a_value_beyond_the_limit_of_its_field_is_refused_by_the_decoder(code: RequestCode) -> None:
    wire.decode_request(_message(code))
    for name, values in {**FIELDS[RequestCode.HEART_BEAT], **FIELDS[code]}.items():
        for value in values:
            with pytest.raises(BodyError):
                wire.decode_request(_message(code, **{name: value}))


def test_every_field_of_every_message_declares_its_limit() -> None:
    kinds = [*wire.REQUESTS.values(), *wire.RESPONSES.values(), Entry]
    for kind in kinds:
        info = msgspec.inspect.type_info(kind)
        assert isinstance(info, msgspec.inspect.StructType)
        for field in info.fields:
            for part in _parts(field.type):
                assert _is_limited(part), f"{kind}.{field.name}: {part}"


def _parts(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """Return the types that make up the type of a field."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return list(kind.types)
    if isinstance(kind, msgspec.inspect.DictType):
        return [kind, kind.key_type, kind.value_type]
    return [kind]


def _is_limited(kind: msgspec.inspect.Type) -> bool:
    match kind:
        case msgspec.inspect.IntType():
            return kind.ge is not None and kind.le is not None
        case msgspec.inspect.StrType() | msgspec.inspect.DictType() | msgspec.inspect.VarTupleType():
            return kind.max_length is not None
        case msgspec.inspect.EnumType() | msgspec.inspect.NoneType() | msgspec.inspect.BytesType():
            return True  # the bytes of a body are limited by those of its frame
        case _:
            return False


@pytest.mark.parametrize("name", list(ENTRY))
def test_an_entry_beyond_the_limit_of_a_field_is_refused_by_the_decoder(name: str) -> None:
    valid = {"magic": "1", "size": "48", "index": "0", "term": "1", "pos": "0"}
    text = ",".join(f'"{key}":{value}' for key, value in valid.items())
    wire.decode_request(_message(RequestCode.PUSH, batchEntry=f"[{{{text}}}]"))
    for value in ENTRY[name]:
        text = ",".join(f'"{key}":{number}' for key, number in {**valid, name: value}.items())
        with pytest.raises(BodyError):
            wire.decode_request(_message(RequestCode.PUSH, batchEntry=f"[{{{text}}}]"))


def test_a_refused_frame_names_the_field() -> None:
    async def scenario(site: Site) -> Command:
        return await _send(site, "n0", RequestCode.VOTE, _vote("n0", "n1", 1 << 70))

    answer = _play(scenario)
    assert answer.code == FrameCode.SYSTEM_ERROR
    assert "$.term" in (answer.remark or "")
