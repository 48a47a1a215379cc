"""Brokers that elect their master: their configuration, ledgers, refusals, failures and stops.

See docs/reference/protocol/dledger.md, "Broker of a DLedger group" and "DLedger files".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, pull, records, send
from mqproof.conformance.adapters.scripted_members.drawn_ledgers import wrong_ledgers
from mqproof.conformance.hosts.simulated import MEMBERS
from mqproof.conformance.wire import chapters
from mqproof.impl.broker import config as broker_config
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.simulated_disk import Step

_PEERS: Final = "n0-10.0.0.1:1;n1-10.0.0.2:2"
_FORM: Final = "n0-HOST:PORT, one for each member, separated by ';', expected"
_MEMBER: Final = "enableDLegerCommitLog=true\n"
_SETTINGS: Final[tuple[tuple[str, str], ...]] = (
    *((f"dLegerPeers={text}", f"f:1: dLegerPeers is {text!r}, {_FORM}") for text in (
        "n0", "n0-", "n0-10.0.0.1", "10.0.0.1:1", "a-10.0.0.1:1", "n-10.0.0.1:1", "n0-10.0.0.1:x",
        "n1234567890-10.0.0.1:1", "N0-10.0.0.1:1", "n0 -10.0.0.1:1", "n0-10.0.0.1:65536",
        "n\u0660-10.0.0.1:1",
    )),
    *((f"dLegerPeers={text}", "") for text in (
        _PEERS, f" {_PEERS} ", f"{_PEERS};", ";;n7-10.0.0.1:1", "n123456789-10.0.0.1:1", "n0-10.0.0.1:65535",
    )),
    (f"{_MEMBER}dLegerSelfId=n0", "dLegerSelfId is 'n0', dLegerPeers names no member"),
    (f"{_MEMBER}dLegerPeers={_PEERS}", "dLegerSelfId is '', dLegerPeers names n0, n1"),
    (f"{_MEMBER}dLegerPeers={_PEERS}\ndLegerSelfId=n2", "dLegerSelfId is 'n2', dLegerPeers names n0, n1"),
    (f"{_MEMBER}dLegerPeers={_PEERS};n0-10.0.0.3:3\ndLegerSelfId=n0",
     "dLegerPeers names one of n0, n1, n0 twice"),
    (f"{_MEMBER}dLegerPeers={_PEERS};n2-10.0.0.2:2\ndLegerSelfId=n0",
     "dLegerPeers has two members at one address"),
    (f"{_MEMBER}dLegerPeers={_PEERS}\ndLegerSelfId=n0\npreferredLeaderIds=n1;n2",
     "preferredLeaderIds names 'n2', dLegerPeers n0, n1"),
    (f"dLegerPeers={_PEERS}\ndLegerSelfId=n7\npreferredLeaderIds=n8", ""),
    (f"{_MEMBER}dLegerPeers={_PEERS}\ndLegerSelfId=n1\npreferredLeaderIds=n1;n0\ndLegerGroup=g", ""),
)  # fmt: skip
"""Texts of a broker's file, with the error."""
_INDEX_SEGMENT_BYTES: Final = 5 * 1024 * 1024 * 32
_DATA_SEGMENT_BYTES: Final = 1 << 14
_REFUSED, _FAILED = 14, 1
_NOT_LEADING: Final = "this broker does not lead its group"


async def membership_settings(site: Site) -> None:
    """Compare what each text of the settings of a member means, or why it is refused."""
    site.rule = chapters.DLEDGER_BROKER
    for text, expected in _SETTINGS:
        try:
            found, _ = broker_config.read(text, "f")
        except ConfigError as error:
            observed = str(error)
        else:
            observed = ""
            _compare_members(site, text, found)
        site.compare(f"the error for {text!r}", expected, observed)


def _compare_members(site: Site, text: str, found: Any) -> None:
    given = dict(line.split("=", 1) for line in text.splitlines())
    parts = [part.strip() for part in given.get("dLegerPeers", "").split(";") if part.strip()]
    member = found.membership
    site.compare(f"the members of {text!r}", parts, [str(each) for each in member.peers])
    site.compare(f"the own id of {text!r}", given.get("dLegerSelfId", ""), member.self_id)
    if member.is_member:
        site.compare("the group", (given.get("dLegerGroup", found.name), given["dLegerSelfId"]),
                     (found.group.group, found.group.self_id))  # fmt: skip
        site.compare("the members of the group", ("n0", "n1"), found.group.members)
        preferred = tuple(filter(None, given.get("preferredLeaderIds", "").split(";")))
        site.compare("the preferred ones", preferred, found.group.preferred_leaders)
        site.compare("the id as a slave", int(member.self_id[1:]) + 1, member.slave_id)
        shown = broker_config.show(found)
        site.compare("the settings that are shown", set(), {
            line for line in text.splitlines() if line not in shown.splitlines()})  # fmt: skip


async def drawn_ledgers(site: Site) -> None:
    """Fill, cut, delete, kill and damage drawn ledgers, and compare their files and entries."""
    site.rule = chapters.DLEDGER
    for seed in range(12):
        for text in wrong_ledgers(seed):
            site.report(text)


async def group_stores(site: Site) -> None:
    """What clients see of a group: without a quorum, during a transfer, at a stop, and while a disk fails."""
    site.rule = chapters.DLEDGER_BROKER
    await _led(site)
    await make_topic(site, "t", 2)
    await _refused_messages(site)
    await _sizes(site)
    await _returned(site)
    await _handing_over(site)
    await _without_quorum(site)
    await _paused(site)
    await _failed_disk(site)
    await _stopped(site)
    await _deleted_topic(site)


async def _led(site: Site) -> str:
    """Wait for a master, send further requests to it, and return its node."""
    while (master := site.cluster.master) is None:
        await asyncio.sleep(0.05)
    site.broker = Address(site.cluster.machines[master].host, site.broker.port)
    await asyncio.sleep(2)
    return master


def _others(master: str) -> list[str]:
    return [node for node in MEMBERS if node != master]


async def _put(site: Site, body: bytes = b"m") -> Answer:
    """Send without waiting for the answer."""
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "i": "",
        "j": 0, "k": False, "m": False,
    }  # fmt: skip
    line = await RawClient(site.broker).open(site.cluster.internet.machine(HOST))
    return line.put(CODES["SEND_MESSAGE_V2"], {key: written(each) for key, each in fields.items()}, body)


async def _sizes(site: Site) -> None:
    """The first segment of the log is full now, so the index is written."""
    await asyncio.sleep(1)
    for node in MEMBERS:
        disk = site.cluster.machines[node].disk
        for folder, size in (("data", _DATA_SEGMENT_BYTES), ("index", _INDEX_SEGMENT_BYTES)):
            path = f"/store/dledger-{node}/{folder}/{0:020}"
            site.compare(f"the size of {path}", size, disk.open(path).size())


async def _refused_messages(site: Site) -> None:
    """Messages that fit no segment are refused; the largest one that does is stored at all members."""
    await send(site, "t", "sized")
    (stored,) = await records(site, "t")
    room = _DATA_SEGMENT_BYTES - 48 - 8 - (len(stored.raw) - len(stored.body))
    for size, code in ((room + 1, 13), (room, 0), (room - 1, 0)):
        await send(site, "t", b"x" * size, expects=code)
    found = [len(each.body) for each in await records(site, "t")]
    site.compare("the sizes of the stored messages", [5, room, room - 1], found)


async def _timed(site: Site, waiting: Answer, code: int, remark: str, seconds: float, what: str) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    answer = await waiting
    took_s = loop.time() - began_s
    site.compare(f"the answer {what}", (code, True), (answer.code, remark in (answer.remark or "")),
                 answer.remark)  # fmt: skip
    site.compare(f"whether it takes {seconds} s {what}: {took_s:.3f}", True, abs(took_s - seconds) < 0.1)


async def _returned(site: Site) -> None:
    """A message that a consumer returns is stored by the group, delayed, and delivered once."""
    await make_group(site, "g")
    first = (await records(site, "t"))[0]
    await site.ask(
        "CONSUMER_SEND_MSG_BACK", offset=first.commit_offset, group="g", delayLevel=1, originTopic="t",
    )  # fmt: skip
    await asyncio.sleep(4)
    found = [(each.body, each.reconsume_times) for each in await records(site, "%RETRY%g")]
    site.compare("the returned message", [(b"sized", 1)], found)


async def _handing_over(site: Site) -> None:
    """A master refuses messages while it transfers its leadership. Without an answer it steps down."""
    master = await _led(site)
    target = _others(master)[0]
    site.cluster.pause(target)
    store = site.cluster.group_store(master)
    transfer = asyncio.ensure_future(store.node.transfer_leadership(target))
    await asyncio.sleep(0.1)
    await _timed(site, await _put(site), _REFUSED, "this broker is transferring its leadership", 0.0,
                 "during a transfer")  # fmt: skip
    await asyncio.sleep(3)
    site.compare("the result of the transfer", "TAKE_LEADERSHIP_FAILED", (await transfer).name)
    await _led(site)
    await send(site, "t", "after a transfer")
    site.cluster.go_on(target)
    await asyncio.sleep(3)


async def _without_quorum(site: Site) -> None:
    """A master without its slaves: what it answers, until it notices and after it."""
    master = await _led(site)
    for node in _others(master):
        site.cluster.pause(node)
    before = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])
    await _timed(site, await _put(site, b"lonely"), _FAILED, "no quorum confirmed in time", 2.5,
                 "without a quorum")  # fmt: skip
    after = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])
    site.compare("the end of the queue without a quorum", before, after)
    waiting: list[Answer] = []
    for _ in range(60):
        if not site.cluster.group_store(master).node.leads:
            break
        waiting.append(await _put(site, b"late"))
        await asyncio.sleep(0.1)
    answers = [await each for each in waiting]
    site.compare("the codes of the sends that wait", {_FAILED}, {each.code for each in answers})
    remarks = [each.remark or "" for each in answers]
    site.compare("the last remark", True, "the leader has changed" in remarks[-1], remarks[-1])
    await asyncio.sleep(0.1)
    await _timed(site, await _put(site), _REFUSED, _NOT_LEADING, 0.0, "after it gave up")
    answer = await pull(site, "t", 0)
    site.compare("whether it serves its messages", True, len(answer.body) > 0)
    site.watch.judges_answers = False  # it cannot know that the successor may have more
    await pull(site, "t", before + 9, expects=20)
    site.watch.judges_answers = True
    for node in _others(master):
        site.cluster.go_on(node)
    await asyncio.sleep(8)
    await _led(site)
    await send(site, "t", "after the quorum is back")
    offsets = [each.queue_offset for each in await records(site, "t", before)]
    site.compare("the offsets then", list(range(before, before + len(offsets))), offsets)


async def _paused(site: Site) -> None:
    """A master whose process was stopped does not answer as one when it continues."""
    master = await _led(site)
    end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])
    line = await RawClient(site.broker).open(site.cluster.internet.machine(HOST))
    site.cluster.pause(master)
    fields = {
        "consumerGroup": "g", "topic": "t", "queueId": 0, "queueOffset": end + 5, "maxMsgNums": 32,
        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*",
        "expressionType": "TAG",
    }  # fmt: skip
    waiting = line.put(CODES["PULL_MESSAGE"], {key: written(each) for key, each in fields.items()}, b"")
    await asyncio.sleep(12)
    site.cluster.go_on(master)
    answer = await waiting
    site.compare("the answer of a master that was stopped", (20, str(end + 5)), (
        answer.code, answer.fields.get("nextBeginOffset")))  # fmt: skip
    line.close()
    site.hang_up()
    await asyncio.sleep(3)


async def _failed_disk(site: Site) -> None:
    """The disk of the master fails: it answers at once and leads no more; another member leads."""
    master = await _led(site)
    disk = site.cluster.machines[master].disk
    end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])

    def on_step(step: Step) -> None:
        if step.kind == "write" and "/data/" in step.path:
            raise OSError("the write fails")

    disk.on_step = on_step
    await _timed(site, await _put(site, b"failed"), _FAILED, "DISK_ERROR", 0.0, "of a failing disk")
    answer = await _put(site)
    site.compare("whether the next one is refused", True, (await answer).code in (_FAILED, _REFUSED))
    site.hang_up()
    disk.on_step = None
    await asyncio.sleep(10)
    other = await _led(site)
    site.compare("whether another member leads", True, other != master)
    await send(site, "t", "after a failing disk")
    found = [each.body for each in await records(site, "t", end)]
    site.compare("the messages after a failing disk", [b"after a failing disk"], found)
    site.cluster.kill(master)
    await site.cluster.start(master)
    await asyncio.sleep(3)
    await _same_logs(site)


async def _same_logs(site: Site) -> None:
    logs = {node: site.cluster.log(node) for node in MEMBERS}
    shown = {
        node: [(each.commit_offset, bytes(each.message.body)) for each in log] for node, log in logs.items()
    }
    site.compare("whether the logs of all members are equal", [True] * 3, [
        log == shown["n0"] for log in shown.values()])  # fmt: skip


async def _stopped(site: Site) -> None:
    """A master that stops cleanly transfers its leadership: another one leads within half a second."""
    master = await _led(site)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await site.cluster.stop(master)
    while site.cluster.master is None and loop.time() < began_s + 9:
        await asyncio.sleep(0.01)
    took_s = loop.time() - began_s
    site.compare(f"whether a clean stop is short: {took_s:.2f}", True, took_s < 1.5)
    for node in MEMBERS:
        is_marked = "/store/abort" in site.cluster.machines[node].disk.files("/store")
        site.compare(f"whether {node} is marked as running", node != master, is_marked)
    site.hang_up()
    await _led(site)
    await send(site, "t", "after a stop")
    await site.cluster.start(master)
    await asyncio.sleep(3)
    await _same_logs(site)


async def _deleted_topic(site: Site) -> None:
    """The queues of a deleted topic stay, so all members number its messages alike."""
    await _led(site)
    end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    await asyncio.sleep(1)
    await make_topic(site, "t", 2)
    answer = await send(site, "t", "again")
    site.compare("the offset in the topic that was made again", str(end), answer.fields["queueOffset"])
    for node in MEMBERS:
        site.cluster.lose_power(node)
    site.hang_up()
    for node in MEMBERS:
        await site.cluster.start(node)
    await asyncio.sleep(4)
    await _led(site)
    found = [each.body for each in await records(site, "t", end)]
    site.compare("the messages after all lost their power", [b"again"], found)
    await _same_logs(site)


MEMBERSHIP_SETTINGS: Final = Inspection("membership settings", membership_settings)
DRAWN_LEDGERS: Final = Inspection("drawn ledgers", drawn_ledgers)
GROUP_STORES: Final = Inspection("stores of a group", group_stores, {"busy_ms": 60_000}, elected=True)
