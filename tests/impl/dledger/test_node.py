"""Tests nodes on a runtime:

the core with remoting frames, in simulation and once on real sockets and files.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from mqproof.impl.dledger import node as node_module
from mqproof.impl.dledger import wire
from mqproof.impl.dledger.changes import Change, Lacks, Refused
from mqproof.impl.dledger.codes import ResponseCode
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.ledger import LedgerConfig
from mqproof.impl.dledger.node import Node
from mqproof.impl.dledger.rpc_bodies import (
    NO_OP,
    AppendRequest,
    AppendResponse,
    GetRequest,
    GetResponse,
    Message,
    MetadataRequest,
    MetadataResponse,
    PushRequest,
    TransferRequest,
)
from mqproof.impl.dledger.state import Role
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.message import Message as RocketMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, AsyncioNetwork, SimulatedNetwork
from mqproof.impl.runtime.runtime import production, simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from mqproof.spec.events import Event, Kind
from tests.impl.left import nothing_left

T = TypeVar("T")

NAMES = ("n0", "n1", "n2")
SMALL = LedgerConfig(data_segment_bytes=1 << 16, index_segment_bytes=32 * 1024)


class Site:
    """Three nodes, each with its own disk, on one simulated network."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.network = SimulatedNetwork(delay_s=0.001)
        self.disks = {name: SimulatedDisk() for name in NAMES}
        self.runtimes = {
            name: simulated(loop, self.network, number, self.disks[name]) for number, name in enumerate(NAMES)
        }
        self.addresses = {name: Address("10.0.0.1", 40_911 + number) for number, name in enumerate(NAMES)}
        self.events: list[Event] = []
        self.nodes: dict[str, Node] = {}

    async def start(self, name: str) -> None:
        runtime = self.runtimes[name]
        events = EventLog(self.events.append, name, runtime.clock)
        self.nodes[name] = Node(
            GroupConfig("g", name, NAMES), self.addresses, "/store", runtime, events, SMALL
        )
        await self.nodes[name].start()

    async def stop(self, name: str) -> None:
        await self.nodes.pop(name).stop()

    async def leader(self) -> Node:
        while True:
            leaders = [node for node in self.nodes.values() if node.leads]
            if leaders:
                return leaders[0]
            await asyncio.sleep(0.1)

    async def append(self, body: bytes) -> int:
        """Repeat a client's request until a member answers SUCCESS."""
        while True:
            code, entry = await (await self.leader()).append(body)
            if code is ResponseCode.SUCCESS:
                assert entry is not None
                return entry.index

    async def ask(self, name: str, request: Message) -> Message:
        client = RemotingClient(self.network)
        command = await client.invoke(self.addresses[name], wire.encode_request(request), 30.0)
        await client.close()
        return wire.decode_response(request, command)


def _play(scenario: Callable[[Site], Awaitable[T]]) -> T:
    loop = SimulatedLoop()

    async def main() -> T:
        site = Site(loop)
        for name in NAMES:
            await site.start(name)
        try:
            async with asyncio.timeout(600):
                found = await scenario(site)
        finally:
            async with asyncio.timeout(60):
                for name in list(site.nodes):
                    await site.stop(name)
        await nothing_left(loop, *site.disks.values())
        return found

    return run_simulated(main(), loop)


def _bodies(node: Node) -> list[bytes]:
    ledger = node.member.ledger
    entries = [ledger.read(index) for index in range(ledger.end_index + 1)]
    return [entry.body for entry in entries if entry.magic != NO_OP]


def test_an_entry_is_acknowledged_when_a_quorum_has_it() -> None:
    async def scenario(site: Site) -> list[bool]:
        await site.append(b"one")
        return [b"one" in _bodies(node) for node in site.nodes.values()]

    assert sum(_play(scenario)) >= 2


def test_a_group_without_its_leader_continues_and_loses_nothing() -> None:
    async def scenario(site: Site) -> tuple[list[bytes], str, str]:
        for number in range(20):
            await site.append(b"%d" % number)
        first = (await site.leader()).config.self_id
        await site.stop(first)
        await site.append(b"20")
        second = await site.leader()
        await site.start(first)
        await site.append(b"21")
        while _bodies(site.nodes[first]) != _bodies(second):
            await asyncio.sleep(0.1)
        return _bodies(site.nodes[first]), first, second.config.self_id

    bodies, first, second = _play(scenario)
    assert bodies == [b"%d" % number for number in range(22)]
    assert first != second


def test_a_disconnected_leader_stops_answering() -> None:
    async def scenario(site: Site) -> tuple[ResponseCode, bool, ResponseCode]:
        await site.append(b"one")
        old = await site.leader()
        name = old.config.self_id
        site.network.silence(site.addresses[name])
        for other in NAMES:
            if other != name:
                site.network.silence(site.addresses[other])  # the old leader sends nothing either
        code, _ = await old.append(b"lost?")
        await asyncio.sleep(10)
        after, _ = await old.append(b"refused")
        return code, old.leads, after

    code, leads, after = _play(scenario)
    assert code is ResponseCode.WAIT_QUORUM_ACK_TIMEOUT
    assert not leads
    assert after is ResponseCode.NOT_LEADER


def test_a_client_of_the_rpc_appends_and_reads_and_gets_the_leader() -> None:
    async def scenario(site: Site) -> tuple[Message, Message, Message, Message]:
        leader = (await site.leader()).config.self_id
        common = ("g", leader, "client")
        metadata = await site.ask(leader, MetadataRequest(*common))
        appended = await site.ask(leader, AppendRequest(*common, body=b"\x00hello\xff"))
        assert isinstance(appended, AppendResponse)
        read = await site.ask(leader, GetRequest(*common, begin_index=appended.index))
        other = next(name for name in NAMES if name != leader)
        refused = await site.ask(other, AppendRequest("g", other, "client", body=b"no"))
        assert isinstance(metadata, MetadataResponse)
        assert metadata.leader_id == leader
        return metadata, appended, read, refused

    metadata, appended, read, refused = _play(scenario)
    assert isinstance(metadata, MetadataResponse)
    assert set(metadata.peers) == set(NAMES)
    assert isinstance(read, GetResponse)
    assert [entry.body for entry in read.entries] == [b"\x00hello\xff"]
    assert refused.code == ResponseCode.NOT_LEADER
    assert appended.code == ResponseCode.SUCCESS


def test_an_operator_can_transfer_the_leadership_to_a_chosen_member() -> None:
    async def scenario(site: Site) -> None:
        await site.append(b"one")
        leader = (await site.leader()).config.self_id
        to, other = (name for name in NAMES if name != leader)

        async def ask(member: str, transferee: str | None, group: str = "g") -> int:
            command = TransferRequest(group, member, "client", transfer_id=member, transferee_id=transferee)
            return (await site.ask(member, command)).code

        assert await ask(leader, "n7") == ResponseCode.UNKNOWN_MEMBER
        assert await ask(leader, leader) == ResponseCode.UNKNOWN_MEMBER
        assert await ask(leader, None) == ResponseCode.UNKNOWN_MEMBER
        assert await ask(leader, to, "another") == ResponseCode.UNKNOWN_GROUP
        assert await ask(other, to) == ResponseCode.NOT_LEADER
        assert site.nodes[leader].leads, "nothing has happened so far"
        assert await ask(leader, to) == ResponseCode.SUCCESS
        assert site.nodes[to].role is Role.LEADER
        await site.append(b"two")
        assert _bodies(site.nodes[to]) == [b"one", b"two"]

    _play(scenario)


def test_a_leader_whose_successor_does_not_take_over_continues() -> None:
    async def scenario(site: Site) -> tuple[ResponseCode, list[bytes]]:
        await site.append(b"one")
        leader = await site.leader()
        to = next(name for name in NAMES if name != leader.config.self_id)
        await site.stop(to)
        await asyncio.sleep(0.1)  # the leader notices that the connection is closed
        term, began_s = leader.member.core.state.term, asyncio.get_running_loop().time()
        code = await leader.transfer_leadership(to)
        assert asyncio.get_running_loop().time() - began_s < 1, "no member listens there"
        await site.append(b"two")
        assert leader.leads
        assert leader.member.core.state.term == term
        return code, _bodies(leader)

    assert _play(scenario) == (ResponseCode.TAKE_LEADERSHIP_FAILED, [b"one", b"two"])


def test_a_single_leader_has_no_successor() -> None:
    async def scenario(site: Site) -> tuple[ResponseCode, ResponseCode]:
        leader = await site.leader()
        others = [name for name in NAMES if name != leader.config.self_id]
        follower = await site.nodes[others[0]].transfer_leadership()
        for name in others:
            await site.stop(name)
        await asyncio.sleep(5)  # their answers arrived until a moment ago
        return follower, await leader.transfer_leadership()

    assert _play(scenario) == (ResponseCode.NOT_LEADER, ResponseCode.LEADER_NOT_READY)


@pytest.mark.parametrize("fails", [False, True])
def test_unanswered_pushes_are_dropped_after_their_time_or_a_disk_failure(fails: bool) -> None:
    """A push that overtook another is not answered. It is dropped after 3 s, or when the disk failed."""

    async def scenario(site: Site) -> tuple[int, int]:
        leader = await site.leader()
        follower = next(node for node in site.nodes.values() if node is not leader)
        state = leader.member.core.state
        far = PushRequest(
            group="g",
            remote_id=follower.config.self_id,
            local_id=leader.config.self_id,
            leader_id=leader.config.self_id,
            term=state.term,
            pre_log_index=100,
            pre_log_term=state.term,
        )
        client = RemotingClient(site.network)
        asked = asyncio.create_task(
            client.invoke(site.addresses[follower.config.self_id], wire.encode_request(far), 30.0)
        )
        await asyncio.sleep(1)
        held = sum(len(channel._working) for channel in follower._server._channels)
        if fails:
            follower.fail(OSError("the disk failed"))
        await asyncio.sleep(0.5 if fails else 6)
        left = sum(len(channel._working) for channel in follower._server._channels)
        asked.cancel()
        await client.close()
        return held, left

    assert _play(scenario) == (1, 0)


def test_a_message_in_the_ledger_is_a_record_with_its_own_position() -> None:
    async def scenario(site: Site) -> tuple[bytes, int]:
        draft = record.encode(RocketMessage(topic="T", body=b"hello", properties={}))

        def body(position: int) -> bytes:
            placed = bytearray(draft)
            record.place(placed, 7, position, 1_700_000_000_000)
            return bytes(placed)

        leader = await site.leader()
        code, entry = await leader.append(body)
        assert code is ResponseCode.SUCCESS
        assert entry is not None
        return entry.body, entry.pos

    data, position = _play(scenario)
    assert record.decode(data, position + 48).commit_offset == position + 48


def test_the_actions_of_nodes_are_in_their_event_log() -> None:
    async def scenario(site: Site) -> list[Event]:
        await site.append(b"one")
        return site.events

    events = _play(scenario)
    kinds = {event.kind for event in events}
    flushed = [event.attrs["index"] for event in events if event.kind is Kind.FLUSH]
    assert {"0", "1"} <= set(flushed)
    assert {
        Kind.RECOVER,
        Kind.VOTE,
        Kind.BECOME_LEADER,
        Kind.RAFT_APPEND,
        Kind.RAFT_COMMIT,
        Kind.FLUSH,
    } <= kinds


def test_three_nodes_on_sockets_and_files_commit_an_entry(tmp_path: Path) -> None:
    async def main() -> list[ResponseCode]:
        network = AsyncioNetwork()
        configs = [
            GroupConfig(
                "g",
                name,
                NAMES,
                heartbeat_ms=100,
                give_up_ms=10_000,
                vote_wait_ms=(10, 200),
                round_ms=(2000, 3000),
            )
            for name in NAMES
        ]
        addresses = {name: Address("127.0.0.1", 0) for name in NAMES}
        nodes = [
            Node(config, addresses, str(tmp_path / config.self_id), production(network), None, SMALL)
            for config in configs
        ]
        # A port is known only when its node listens. No node sends a request before its first wait has ended.
        for node in nodes:
            addresses[node.config.self_id] = await node.start()
        for node in nodes:
            node.know(addresses)
        codes: list[ResponseCode] = []
        async with asyncio.timeout(60):
            while len(codes) < 5:
                for node in nodes:
                    code, _ = await node.append(b"x")
                    if code is ResponseCode.SUCCESS:
                        codes.append(code)
                await asyncio.sleep(0.01)
        for node in nodes:
            await node.stop()
        return codes

    assert asyncio.run(main()) == [ResponseCode.SUCCESS] * 5


def test_a_refused_append_names_no_entry_and_is_not_in_the_event_log() -> None:
    async def scenario(site: Site) -> None:
        await site.append(b"one")
        leader = await site.leader()
        name = leader.config.self_id
        follower = next(other for other in NAMES if other != name)
        refused = await site.ask(follower, AppendRequest("g", follower, "client", body=b"no"))
        for other in NAMES:
            site.network.silence(site.addresses[other])
        answered = [event for event in site.events if event.kind is Kind.SEND_ACK]
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        code, entry = await leader.append(b"lost?")
        assert loop.time() - began_s == pytest.approx(2.5, abs=0.001)
        assert isinstance(refused, AppendResponse)
        assert (refused.index, refused.pos) == (-1, -1)
        assert (code, entry is None) == (ResponseCode.WAIT_QUORUM_ACK_TIMEOUT, False)
        assert [event for event in site.events if event.kind is Kind.SEND_ACK] == answered
        assert [event.attrs["index"] for event in answered] == ["1"]

    _play(scenario)


def test_an_append_that_is_not_committed_in_time_names_no_entry() -> None:
    async def scenario(site: Site) -> Message:
        leader = (await site.leader()).config.self_id
        for other in NAMES:
            if other != leader:
                site.nodes[other].kill()
        return await site.ask(leader, AppendRequest("g", leader, "client", body=b"lost?"))

    answer = _play(scenario)
    assert isinstance(answer, AppendResponse)
    assert answer.code == ResponseCode.WAIT_QUORUM_ACK_TIMEOUT
    assert (answer.index, answer.pos) == (-1, -1)


def test_a_node_whose_disk_failed_serves_no_client() -> None:
    async def scenario(site: Site) -> tuple[list[int], list[ResponseCode], bool]:
        await site.append(b"one")
        leader = await site.leader()
        name = leader.config.self_id
        read = GetRequest("g", name, "client", begin_index=1)
        codes = [(await site.ask(name, read)).code]
        leader.fail(OSError("the disk failed"))
        leader.fail(OSError("another failure"))
        codes.append((await site.ask(name, read)).code)
        appended, _ = await leader.append(b"two")
        assert str(leader.failure) == "the disk failed"
        return codes, [appended, await leader.transfer_leadership()], leader.leads

    codes, refused, leads = _play(scenario)
    assert codes == [ResponseCode.SUCCESS, ResponseCode.NOT_LEADER]
    assert refused == [ResponseCode.DISK_ERROR, ResponseCode.LEADER_NOT_READY]
    assert not leads


@pytest.mark.parametrize(
    ("index", "code"),
    [
        (-1, ResponseCode.INDEX_OUT_OF_RANGE),
        (0, ResponseCode.SUCCESS),
        (1, ResponseCode.SUCCESS),
        (2, ResponseCode.INDEX_OUT_OF_RANGE),
    ],
)
def test_only_committed_entries_are_read(index: int, code: ResponseCode) -> None:
    async def scenario(site: Site) -> Message:
        await site.append(b"one")
        leader = (await site.leader()).config.self_id
        return await site.ask(leader, GetRequest("g", leader, "client", begin_index=index))

    assert _play(scenario).code == code


def test_a_deleted_entry_is_named_as_such() -> None:
    async def scenario(site: Site) -> list[int]:
        for _ in range(3):
            await site.append(bytes(30_000))
        leader = await site.leader()
        name, ledger = leader.config.self_id, leader.ledger
        ledger.data.detach_before(SMALL.data_segment_bytes).carry_out()
        ledger.forget_deleted().carry_out()
        return [
            (await site.ask(name, GetRequest("g", name, "c", begin_index=index))).code for index in (2, 3)
        ]

    assert _play(scenario) == [ResponseCode.INDEX_LESS_THAN_LOCAL_BEGIN, ResponseCode.SUCCESS]


def test_a_transfer_whose_answer_is_late_may_still_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a request that did not leave this member has certainly no effect."""
    monkeypatch.setattr(node_module, "_RPC_S", 1.0)

    async def scenario(site: Site) -> tuple[ResponseCode, ResponseCode, Role]:
        await site.append(b"one")
        leader = await site.leader()
        to = next(name for name in NAMES if name != leader.config.self_id)
        site.network.silence(site.addresses[to])
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        transfer = asyncio.create_task(leader.transfer_leadership(to))
        await asyncio.sleep(2)
        code, _ = await leader.append(b"two")
        result = await transfer
        assert loop.time() - began_s == pytest.approx(3, abs=0.001)
        await asyncio.sleep(0.1)
        return code, result, leader.role

    code, transferred, role = _play(scenario)
    assert code is ResponseCode.LEADER_TRANSFERRING
    assert transferred is ResponseCode.TAKE_LEADERSHIP_FAILED
    assert role is not Role.LEADER, "it steps down, because the member may lead"


# The life of a node.


def test_the_addresses_of_a_group_have_the_port_that_a_node_has_chosen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = SimulatedLoop()

    async def main() -> tuple[str, str]:
        network = SimulatedNetwork()
        runtime = simulated(loop, network, 1, SimulatedDisk())
        config = GroupConfig("g", "n0", ("n0",))
        node = Node(config, {"n0": Address("10.0.0.1", 0)}, "/store", runtime)
        address = await node.start()
        client = RemotingClient(network)
        request = MetadataRequest("g", "n0", "client")
        answer = wire.decode_response(
            request, await client.invoke(address, wire.encode_request(request), 30.0)
        )
        await client.close()
        await node.stop()
        assert isinstance(answer, MetadataResponse)
        return answer.peers["n0"], str(address)

    reported, chosen = run_simulated(main(), loop)
    assert reported == chosen != "10.0.0.1:0"
    assert (
        f"the DLedger port {chosen} is open: any peer that reaches it acts as a member of the group"
        in caplog.text
    )


def test_an_append_that_waits_while_its_node_stops_may_be_committed() -> None:
    async def scenario(site: Site) -> tuple[ResponseCode, list[str]]:
        leader = await site.leader()
        name = leader.config.self_id
        for other in NAMES:
            if other != name:
                site.network.silence(site.addresses[other])
        append = asyncio.create_task(leader.append(b"lost?"))
        await asyncio.sleep(0.1)
        await site.stop(name)
        return (await append)[0], site.disks[name].names(f"/store/dledger-{name}/index")

    code, index = _play(scenario)
    assert code is ResponseCode.TERM_CHANGED
    assert index == [f"{0:020}"], "a clean stop leaves a complete index"


def test_a_killed_node_answers_nothing_and_has_no_task() -> None:
    async def scenario(site: Site) -> tuple[bool, bool]:
        leader = await site.leader()
        tasks = list(leader._tasks)
        leader.kill()
        await asyncio.sleep(0.1)
        request = GetRequest("g", leader.config.self_id, "client", begin_index=0)
        with pytest.raises(RemotingError):
            await site.ask(leader.config.self_id, request)
        return bool(tasks), all(task.done() for task in tasks)

    assert _play(scenario) == (True, True)


def test_a_leader_whose_disk_fails_at_an_append_leaves_its_group(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> tuple[ResponseCode, bool, str]:
        await site.append(b"one")
        leader = await site.leader()
        disk = site.disks[leader.config.self_id]

        def fail(_: object) -> None:
            raise OSError("the disk is broken")

        disk.on_step = fail
        code, entry = await leader.append(b"two")
        disk.on_step = None
        assert entry is None
        return code, leader.leads, leader.config.self_id

    code, leads, name = _play(scenario)
    assert code is ResponseCode.DISK_ERROR
    assert not leads
    assert caplog.messages.count(f"{name} of g stops: the disk is broken") == 1


def test_a_refusal_is_logged_once_in_a_minute_for_each_sender(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        node = site.nodes["n0"]
        for _ in range(2):
            node._on_change(Refused("n1", "a push"), None)
        node._on_change(Refused("n2", "a push"), None)
        await asyncio.sleep(59.9)
        node._on_change(Refused("n1", "a push"), None)
        await asyncio.sleep(0.2)
        node._on_change(Refused("n1", "a push"), None)

    _play(scenario)
    logged = [line for line in caplog.messages if " refused " in line]
    assert [line.split(" (from")[0] for line in logged] == ["n0 of g refused a push"] * 3
    assert [line.partition("from ")[2][:2] for line in logged] == ["n1", "n2", "n1"]


def test_a_follower_without_its_entries_is_logged_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        site.nodes["n0"]._on_change(Lacks("n2", 100), None)

    _play(scenario)
    assert (
        "n2 of g lacks entries that were deleted here, the ledger begins with 100:"
        " stop it, and give it a copy of another member's store"
    ) in caplog.messages


def test_a_transfer_that_ended_is_forgotten() -> None:
    async def scenario(site: Site) -> tuple[ResponseCode, int, int]:
        await site.append(b"one")
        await asyncio.sleep(3)
        leader = await site.leader()
        transfer = asyncio.create_task(leader.transfer_leadership())
        await asyncio.sleep(0)
        during = len(leader._transfers)
        return await transfer, during, len(leader._transfers)

    assert _play(scenario) == (ResponseCode.SUCCESS, 1, 0)


def test_an_unexpected_error_ends_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(site: Site) -> tuple[str, bool, int]:
        leader = await site.leader()

        def fail(*_: object) -> None:
            raise KeyError("unexpected")

        monkeypatch.setattr(leader.member.core, "tick", fail)
        await asyncio.sleep(10)
        return repr(leader.failure), leader.leads, leader._runtime.supervisor.failures

    assert _play(scenario) == ("KeyError('unexpected')", False, 1)


class _Listener:
    """Records the positions up to which a node says that its ledger is durable."""

    def __init__(self) -> None:
        self.durable: list[int] = []

    def changed(self, _change: Change) -> None: ...
    def failed(self, _reason: str) -> None: ...
    def flushed(self, end_pos: int) -> None:
        self.durable.append(end_pos)


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_node_syncs_one_flush_at_a_time_and_reports_it_unless_entries_were_cut(is_cut: bool) -> None:
    loop = SimulatedLoop()

    async def main() -> tuple[int, list[int], list[int]]:
        runtime = simulated(loop, SimulatedNetwork(), 1, SimulatedDisk())
        released = asyncio.Event()
        syncs: list[int] = []

        async def offload(function: Callable[[], T]) -> T:
            if getattr(function, "__name__", "") == "sync":
                syncs.append(node.ledger.end_index)
                await released.wait()
            return function()

        listener = _Listener()
        config = GroupConfig("g", "n0", ("n0",))
        address = {"n0": Address("10.0.0.1", 40_911)}
        node = Node(
            config, address, "/store", replace(runtime, offload=offload), None, SMALL, listener=listener
        )
        await node.start()
        while not syncs:
            await asyncio.sleep(0.1)
        for _ in range(3):
            node.take([b"x"], lambda _: None)
            await asyncio.sleep(0.1)
        assert (syncs, listener.durable) == ([0], [])
        end_pos = node.ledger.end_of(0)
        if is_cut:
            node.ledger.cut(2)
        released.set()
        await asyncio.sleep(0.1)
        await node.stop()
        return end_pos, syncs, listener.durable

    end_pos, syncs, durable = run_simulated(main(), loop)
    assert syncs[:2] == [0, 2 if is_cut else 3]
    assert (durable[0] == end_pos) is not is_cut
