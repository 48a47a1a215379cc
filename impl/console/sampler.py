"""Samples the brokers and topics of a cluster periodically, for the charts of the dashboard.

One round reads every broker and a bounded number of topics, so that a large cluster is not burdened: its
topics take turns.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from mqproof.impl.admin import brokers, groups, topics
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.brokers import BrokerState
from mqproof.impl.admin.system_names import TopicKind, topic_kind
from mqproof.impl.client.model import ClientError, NoRouteError, RefusalError
from mqproof.impl.console.sample_history import Sample, SampleHistory
from mqproof.impl.runtime.notices import Notices

_log = logging.getLogger(__name__)

PAUSE_S: Final = 10.0
"""The pause between two rounds."""
ROUND_S: Final = 60.0
"""How long a round may take."""
TOPICS_MAX: Final = 500
"""The most topics that are sampled at all."""
TOPICS_OF_ROUND: Final = 50
AT_ONCE: Final = 4
"""How many topics are read at the same time."""


class Sampler:
    """Fills a history. `new_admin` returns connections for one round, `now_s` the seconds since the epoch."""

    def __init__(
        self,
        new_admin: Callable[[], Admin],
        now_s: Callable[[], float],
        may_sample: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`may_sample` returns whether a round can succeed; by default every round is tried."""
        self._new_admin = new_admin
        self._may_sample = may_sample
        self._now_s = now_s
        self.history = SampleHistory()
        self.problem = ""
        """Why the last round failed; empty if it did not."""
        self.sampled_s: float | None = None
        """When the last complete round ended."""
        self.topics_left_out = 0
        self._behind: dict[str, Counter[str]] = {}
        """For each topic, the messages that are not consumed, by broker name."""
        self._next_topic = ""
        self._notices = Notices(_log)

    async def run(self) -> None:
        """Sample until the task is cancelled."""
        while True:
            if self._may_sample is None or await self._may_sample():
                await self.round()
            await asyncio.sleep(PAUSE_S)

    async def round(self) -> None:
        """Sample once. A failure is kept in `problem`, and the charts have a gap."""
        try:
            async with asyncio.timeout(ROUND_S), self._new_admin() as admin:
                states = [state for state in await brokers.cluster_states(admin) if state.id == 0]
                await self._topics(admin, states)
                self._brokers(states)
        except TimeoutError:
            self.problem = f"a round of samples took more than {ROUND_S:.0f} s"
        except ClientError as error:
            self.problem = str(error)
        except Exception as error:  # the pages are of use without charts
            _log.exception("a round of samples failed")
            self.problem = f"a defect of the console: {type(error).__name__}"
        else:
            self.problem, self.sampled_s = "", self._now_s()
        if self.problem:
            self._notices.warn("round", f"the dashboard has no new samples: {self.problem}")

    def _brokers(self, states: Sequence[BrokerState]) -> None:
        self.history.keep("broker", (state.name for state in states))
        for state in states:
            if state.status is not None:
                came_in = _count(state.status, "msgPutTotalTodayNow")
                went_out = _count(state.status, "msgGetTotalTodayNow")
                behind = sum(counts[state.name] for counts in self._behind.values())
                self.history.add(("broker", state.name), Sample(self._now_s(), came_in, went_out, behind))

    async def _topics(self, admin: Admin, states: Sequence[BrokerState]) -> None:
        own_names = frozenset(name for state in states for name in (state.cluster, state.name))
        known = await topics.topic_names(admin)
        names = [name for name in known if topic_kind(name, own_names) is TopicKind.NORMAL]
        self.topics_left_out = max(0, len(names) - TOPICS_MAX)
        names = names[:TOPICS_MAX]
        self.history.keep("topic", names)
        self._behind = {name: self._behind[name] for name in names if name in self._behind}
        turn = self._turn(names)
        for start in range(0, len(turn), AT_ONCE):
            await asyncio.gather(*(self._topic(admin, name) for name in turn[start : start + AT_ONCE]))

    def _turn(self, names: list[str]) -> list[str]:
        """Return the topics of this round, and let the next round continue after them."""
        later = [name for name in names if name >= self._next_topic]
        turn = (later + [name for name in names if name < self._next_topic])[:TOPICS_OF_ROUND]
        self._next_topic = f"{turn[-1]}\0" if len(turn) < len(names) else ""
        return turn

    async def _topic(self, admin: Admin, topic: str) -> None:
        try:
            stored = sum(extent.max_offset for extent in (await topics.topic_stats(admin, topic)).values())
            consumed, behind = 0, Counter[str]()
            for group in await topics.groups_of(admin, topic):
                at = await _progress(admin, group, topic)
                for queue, found in at.queues.items() if at else ():
                    consumed += found.consumer_offset
                    behind[queue.broker_name] += found.broker_offset - found.consumer_offset
        except (NoRouteError, RefusalError):  # it was deleted in between, or the account may not read it
            return
        self._behind[topic] = behind
        self.history.add(("topic", topic), Sample(self._now_s(), stored, consumed, behind.total()))


async def _progress(admin: Admin, group: str, topic: str) -> groups.Progress | None:
    try:
        return await groups.progress(admin, group, topic)
    except (groups.NoOffsetsError, NoRouteError, RefusalError):
        return None


def _count(status: Mapping[str, str], name: str) -> int:
    """Return a counter of the broker's runtime information; 0 if it has none or no number."""
    try:
        return int(status.get(name, "0"))
    except ValueError:
        return 0
