"""Compares what a master and its slaves answer, after the faults of a run have ended.

One topic is filled, deleted and filled again, the first segments of the log are deleted, and an empty slave
is added. Each time, the tables and messages of all brokers must be the same.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.adapters.final_look import FinalLook
from mqproof.conformance.adapters.watched_network import WatchedNetwork
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.hosts.simulated import MASTER, SECOND, SLAVE
from mqproof.conformance.subjects.pair import Pair
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.message_store import MessageStore

_CLIENT: Final = "comparing client"
_PORT: Final = 10911
_COPIED_S: Final = 45.0
"""The time in which a slave has received its master's address from a name server, and copied its tables."""
_RECONNECTED_S: Final = 5.0
_EXPIRED_S: Final = 31.0
_FOLLOWED_S: Final = 60.0
_LARGE_BYTES: Final = 7000
"""Two messages of this size fill a segment."""
_BROKER_IDS: Final = {MASTER: 0, SLAVE: 1, SECOND: 2}


class Comparison:
    """Requests to all brokers of a pair; what is wrong goes to `watch`."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._clients = clients = pair.add_machine(_CLIENT).runtime()
        master = Address(pair.machines[MASTER].host, _PORT)
        self.watch = Watch(lambda: now_ms(clients.clock), is_exact=True, stored_at=str(master))
        self._runtime = replace(clients, network=WatchedNetwork(clients.network, self.watch))
        self._callers: dict[str, Caller] = {}

    async def run(self, *, synchronous: bool) -> None:
        """Fill, delete and fill a topic, and compare the brokers each time."""
        try:
            await self._run(synchronous)
        except TargetError as error:
            self._found("the brokers after the faults", chapters.REPLICATION, str(error))
        finally:
            for caller in self._callers.values():
                await caller.stop()

    async def _run(self, synchronous: bool) -> None:
        # TCP ends connections that the network has forgotten only after many minutes.
        self._pair.internet.reset(*self._pair.links(SLAVE, MASTER)[0])
        await asyncio.sleep(_RECONNECTED_S)
        await self._pair.followed()
        master = self._callers[MASTER] = Caller(self._pair.names[0], self._runtime)
        await master.start()
        topic = f"{master.prefix}_topic"
        await self._call(SLAVE)
        await self._fill(master, topic, 5)
        await self._compare("", (SLAVE,))
        await self._ahead(master, topic)
        await master.request(RequestCode.DELETE_TOPIC_IN_BROKER, headers.TopicRequest(topic))
        await self._fill(master, topic, 2)
        self.watch.crashed()  # the slave's queues begin again, without a request to it
        await self._compare(" after the topic was deleted", (SLAVE,))
        await self._large(master, topic)
        await asyncio.sleep(_EXPIRED_S)
        await master.request(RequestCode.DELETE_EXPIRED_COMMITLOG)
        self.watch.crashed()
        await self._add_slave()
        await self._compare(" after segments expired", (SLAVE, SECOND))
        if synchronous:
            await self._wait_for_two(master, topic)
        else:
            await self._lose_end(master, topic)

    async def _call(self, node: str) -> None:
        caller = Caller(self._pair.names[0], self._runtime)
        caller.prefix, caller.broker_name = self._callers[MASTER].prefix, self._callers[MASTER].broker_name
        caller.broker = Address(self._pair.machines[node].host, _PORT)
        self._callers[node] = caller

    async def _fill(self, master: Caller, topic: str, count: int) -> None:
        """Send messages to two queues, with tags and keys, and commit an offset."""
        await master.make_topic(topic, 2)
        group = f"{master.prefix}_group"
        await master.make_group(SubscriptionGroup(group_name=group))
        for number in range(count):
            tag = "AB"[number % 2]
            await master.send(topic, number % 2, f"{topic} {number} of {count}", tag=tag, key="k l")
        await master.send(topic, 0, f"{topic} delayed {count}", delay_level=18)
        header = headers.UpdateOffsetRequest(group, topic, 0, 1)
        await master.request(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def _compare(self, when: str, slaves: tuple[str, ...]) -> None:
        """Wait until the slaves have copied everything, and compare each with the master."""
        for node in slaves:
            if not await self._pair.until(self._has_all(node), _FOLLOWED_S):
                self._found(f"the {node}{when}", chapters.REPLICATION, "it does not receive its master's log")
                return
        await asyncio.sleep(_COPIED_S)
        first = await FinalLook(self._callers[MASTER], self.watch).look()
        for node in slaves:
            look = FinalLook(self._callers[node], self.watch, _BROKER_IDS[node])
            look.compare(first, await look.look(), f"at the {node}{when}")

    def _has_all(self, node: str) -> Callable[[], bool]:
        brokers = self._pair.brokers

        def has_all() -> bool:
            mine, masters = brokers[node].store, brokers[MASTER].store
            assert isinstance(mine, MessageStore), "a slave's store"
            assert isinstance(masters, MessageStore), "a master's store"
            return mine.log_last_record == masters.log_last_record

        return has_all

    async def _ahead(self, master: Caller, topic: str) -> None:
        """Pull at the slave beyond its end: its master may have more, so no consumer is sent back."""
        slave = Caller(self._pair.names[0], self._clients)  # the watch does not know what the slave lacks
        slave.broker = self._callers[SLAVE].broker
        end = await slave.offset(RequestCode.GET_MAX_OFFSET, topic, 1)
        header = headers.PullRequest(
            consumer_group=f"{master.prefix}_group", topic=topic, queue_id=1, queue_offset=end + 1,
            max_msg_nums=32, sys_flag=headers.PULL_HAS_SUBSCRIPTION, commit_offset=0,
            suspend_timeout_millis=0, sub_version=0, subscription="*", expression_type="TAG",
        )  # fmt: skip
        answer = await slave.request(RequestCode.PULL_MESSAGE, header, accepts=())
        following = answer.fields.get("nextBeginOffset")
        is_kept = answer.code in (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)
        if not is_kept or following != str(end + 1):
            text = f"code {answer.code} and {following} at {end + 1}, which its master may have"
            self._found("a pull at the slave", chapters.REPLICATION, text)
        await slave.stop()

    async def _large(self, master: Caller, topic: str) -> None:
        for number in range(6):
            await self._send(master, topic, f"large {number}", bytes(_LARGE_BYTES))

    async def _send(self, master: Caller, topic: str, msg_id: str, body: bytes) -> int:
        """Send a message; return the code of the answer."""
        header = headers.SendRequest(
            producer_group="conform", topic=topic, default_topic="TBW102", default_topic_queue_nums=4,
            queue_id=1, sys_flag=0, born_timestamp=1, flag=0, properties=f"UNIQ_KEY\x01{msg_id}\x02",
            reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        answer = await master.request_fields(
            RequestCode.SEND_MESSAGE_V2, headers.write_send_v2(header), body, accepts=()
        )
        return answer.code

    async def _add_slave(self) -> None:
        """Start a slave without any data."""
        self._pair.add_machine(SECOND)
        await self._pair.start(SECOND)
        await self._call(SECOND)
        await asyncio.sleep(_COPIED_S)

    async def _wait_for_two(self, master: Caller, topic: str) -> None:
        """Let the master wait for two slaves: a send is confirmed only when both have the message."""
        pair = self._pair
        replication = pair.setup.replication
        assert replication is not None, "a pair has a slave"
        pair.setup = replace(pair.setup, replication=replace(replication, in_sync_replicas=3))
        await pair.stop(MASTER)
        await pair.start(MASTER)
        server = pair.brokers[MASTER].replicas.server
        assert server is not None, "a master has a server"
        await pair.until(lambda: server.acks.slaves == 2, _FOLLOWED_S)
        await asyncio.sleep(1)
        code = await self._send(master, topic, "for two slaves", b"both")
        missing = [node for node in (SLAVE, SECOND) if not self._has_all(node)()]
        if code != ResponseCode.SUCCESS or missing:
            text = f"code {code}, not at {missing}"
            self._found("a send that waits for two slaves", chapters.REPLICATION, text)
        pair.kill(SECOND)
        code = await self._send(master, topic, "for one slave", b"one")
        if code != ResponseCode.FLUSH_SLAVE_TIMEOUT:
            text = (
                f"code {code}, expected {ResponseCode.FLUSH_SLAVE_TIMEOUT.value}: one of two slaves is away"
            )
            self._found("a send that waits for two slaves", chapters.REPLICATION, text)

    async def _lose_end(self, master: Caller, topic: str) -> None:
        """Delete a topic, let the master lose what it has not flushed, and use the topic again.

        The slaves are stopped, because the master's log then differs from theirs.
        """
        pair = self._pair
        for node in (SLAVE, SECOND):
            await pair.stop(node)
        await self._fill(master, topic, 3)
        await master.request(RequestCode.DELETE_TOPIC_IN_BROKER, headers.TopicRequest(topic))
        pair.lose_power(MASTER)
        self.watch.forget()
        await pair.start(MASTER)
        await master.until_it_serves()
        await self._fill(master, topic, 2)
        await FinalLook(master, self.watch).look()

    def _found(self, what: str, rule: str, text: str) -> None:
        self.watch.found(what, [Wrong(rule, text)])
