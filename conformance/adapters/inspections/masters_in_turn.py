"""Brokers that elect their master: n0, n1 and n0 lead in turn, and each shows every acknowledged message.

At the end the whole group loses its power. See docs/reference/protocol/dledger.md.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.adapters.final_look import FinalLook, Seen
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.watched_network import WatchedNetwork
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.hosts.simulated import MEMBERS, STORE, Cluster
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address

_QUEUES: Final = 2
_COPIED_S: Final = 12.0
"""After this time the members have the topics and groups of their master."""
_LED_S: Final = 30.0
_COMMIT, _ROLLBACK = 8, 12
_LEADERS: Final = ("n0", "n1", "n0")
_AWAY: Final = "n2"
_MANY: Final = 40
"""So many messages fill several segments."""
_KEPT_MS: Final = 100_000
_STORE: Final = replace(STORE, commit_log_segment_bytes=8192, file_reserved_ms=_KEPT_MS)


async def masters_in_turn(site: Site) -> None:
    """Report what is wrong in what the masters show."""
    site.rule = chapters.DLEDGER_BROKER
    cluster = site.cluster
    client = cluster.add_machine("client").runtime()
    watch = Watch(lambda: now_ms(client.clock), is_exact=True, judges_answers=False)
    caller = Caller(cluster.names[0], replace(client, network=WatchedNetwork(client.network, watch)))
    group = _Group(cluster, caller, watch)
    for leader in _LEADERS:
        await group.led_by(leader)
        await group.use()
    cluster.kill(_AWAY)
    await group.send(_MANY)
    await group.expire()
    await cluster.start(_AWAY)
    await group.led_by(_AWAY)
    await group.look(f"at {_AWAY}, which was away while old messages expired")
    await group.expire()
    for node in MEMBERS:
        cluster.lose_power(node)
    await cluster.start_all()
    await group.led_by(None)
    await group.look("after a loss of power")
    await caller.stop()
    for node in MEMBERS:
        await cluster.stop(node)
    for text in (*group.wrong, *(each.text for each in watch.wrong)):
        site.report(text)


class _Group:
    """The brokers, and what a client knows of them."""

    def __init__(self, cluster: Cluster, caller: Caller, watch: Watch) -> None:
        self.wrong: list[str] = []
        self._cluster = cluster
        self._caller = caller
        self._watch = watch
        self._topic = f"{caller.prefix}_t"
        self._acked: dict[tuple[int, int], bytes] = {}
        """The bodies of acknowledged messages by queue and offset."""
        self._others: list[bytes] = []
        """The bodies of other messages that the topic has."""
        self._sent_back = 0
        self._before: Seen | None = None

    async def led_by(self, node: str | None) -> None:
        """Transfer the leadership to the member if it has not got it, and find the master."""
        end_s = self._cluster.now_s + _LED_S
        while (master := self._cluster.master) is None or node not in (None, master):
            if self._cluster.now_s > end_s:
                self.wrong.append(f"{node or 'a member'} does not lead within {_LED_S:.0f} s, {master} leads")
                return
            if master is not None and node is not None:
                await self._cluster.group_store(master).node.transfer_leadership(node)
            await asyncio.sleep(0.5)
        await asyncio.sleep(1.0)  # the new master registers
        await self._caller.start()
        await self._caller.until_it_serves()

    async def use(self) -> None:
        """Send messages of all kinds, then read everything."""
        caller = self._caller
        if self._before is None:
            await caller.make_topic(self._topic, _QUEUES)
            await caller.make_group(SubscriptionGroup(group_name=f"{caller.prefix}_g"))
        sent = await self.send(4)
        await self._use_more(f"m{len(self._acked)}", _commit_offset(sent))
        await asyncio.sleep(_COPIED_S)
        await self.look(f"at {self._cluster.master}")

    async def send(self, count: int) -> headers.SendResponse:
        """Send messages to all queues in turn; return the answer to the last one."""
        number = len(self._acked)
        for at in range(number, number + count):
            sent = await self._caller.send(
                self._topic, at % _QUEUES, f"m{at}", tag=f"t{at % 3}", key=f"k{at}"
            )
            place = sent.queue_id, sent.queue_offset
            if place in self._acked:
                self.wrong.append(f"{place} is given to m{at}, and was given to {self._acked[place]!r}")
            self._acked[place] = f"m{at}".encode()
        return sent

    async def expire(self) -> None:
        """Let each running broker delete what is older than it keeps messages, except what a member lacks."""
        await asyncio.sleep(_KEPT_MS / 1000 + 1)
        for node in self._cluster.brokers:
            address = Address(self._cluster.machines[node].host, self._caller.broker.port)
            await self._caller.request(RequestCode.DELETE_EXPIRED_COMMITLOG, to=address)

    async def _use_more(self, name: str, stored_at: int) -> None:
        """Commit an offset, delay a message, end transactions, and send a message back."""
        caller, group = self._caller, f"{self._caller.prefix}_g"
        await caller.request(
            RequestCode.UPDATE_CONSUMER_OFFSET, headers.UpdateOffsetRequest(group, self._topic, 0, 1)
        )
        await caller.send(self._topic, 0, f"late-{name}", delay_level=1)
        await self._transact(f"kept-{name}", _COMMIT)
        await self._transact(f"dropped-{name}", _ROLLBACK)
        self._others += [f"late-{name}".encode(), f"kept-{name}".encode()]
        back = headers.SendBackRequest(offset=stored_at, group=group, delay_level=1)
        answer = await caller.request(RequestCode.CONSUMER_SEND_MSG_BACK, back, accepts=())
        if answer.code:
            self.wrong.append(f"a message is not sent back: {answer.code}, {answer.remark}")
        self._sent_back += 1

    async def _transact(self, name: str, end: int) -> None:
        properties = "".join(
            f"{key}\x01{value}\x02"
            for key, value in {"UNIQ_KEY": name, "TRAN_MSG": "true", "PGROUP": "p"}.items()
        )
        header = headers.SendRequest(
            producer_group="p", topic=self._topic, default_topic="TBW102", default_topic_queue_nums=4,
            queue_id=1, sys_flag=4, born_timestamp=0, flag=0, properties=properties, reconsume_times=0,
            unit_mode=False, batch=False,
        )  # fmt: skip
        answer = await self._caller.request(RequestCode.SEND_MESSAGE, header, name.encode())
        half = headers.read(headers.SendResponse, answer.fields)
        await self._caller.request(
            RequestCode.END_TRANSACTION,
            headers.EndTransactionRequest("p", half.queue_offset, _commit_offset(half), end, name),
            accepts=(),
        )

    async def look(self, when: str) -> None:
        """Read everything, and compare it with what was there before and with what was acknowledged."""
        last = FinalLook(self._caller, self._watch)
        seen = await last.look()
        if self._before is not None:
            last.compare(self._before, seen, when)
        self._before = seen
        self.wrong += self._missing(seen, when)

    def _missing(self, seen: Seen, when: str) -> Iterator[str]:
        """Compare the messages that have not expired."""
        for (queue_id, offset), body in self._acked.items():
            queue = seen.queues.get((self._topic, queue_id))
            if queue is None or offset >= queue.begin:
                found = [each.body for each in queue.records if each.queue_offset == offset] if queue else []
                if found != [body]:
                    yield f"{when}, queue {queue_id} has {found} at {offset}, expected {body!r}"
        bodies: dict[str, list[bytes]] = {topic: [] for topic, _ in seen.queues}
        expired: set[str] = set()
        for (topic, _), queue in seen.queues.items():
            bodies[topic] += [each.body for each in queue.records]
            if queue.begin:
                expired.add(topic)
        copies = f"%RETRY%{self._caller.prefix}_g"
        everything = sorted([*self._acked.values(), *self._others])
        if self._topic not in expired and sorted(bodies[self._topic]) != everything:
            yield f"{when}, the topic has {sorted(bodies[self._topic])}, expected {everything}"
        if copies not in expired and len(bodies.get(copies, [])) != self._sent_back:
            yield f"{when}, the retry topic has {bodies.get(copies)}, expected {self._sent_back} messages"


def _commit_offset(sent: headers.SendResponse) -> int:
    return int(sent.msg_id[-16:], 16)


MASTERS_IN_TURN: Final = Inspection("masters in turn", masters_in_turn, {"store": _STORE}, elected=True)
