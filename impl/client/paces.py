"""How fast a consumer pulls and consumes, topic by topic. Time is passed in; see docs/protocol.md, "Asked of
clients"."""

from mqproof.impl.remoting.bodies import TopicPace
from mqproof.impl.runtime.rate import Pace


class _Topic:
    def __init__(self, now_s: float) -> None:
        self.pulls, self.pull_ms, self.pulled = Pace(now_s), Pace(now_s), Pace(now_s)
        self.calls, self.call_ms = Pace(now_s), Pace(now_s)
        self.ok, self.failed = Pace(now_s), Pace(now_s)
        self.failed_count = 0


class Paces:
    """Of one consumer. Topics are those it reads, so there are not many."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}

    def pulled(self, topic: str, count: int, took_s: float, now_s: float) -> None:
        """A pull gave messages."""
        paces = self._of(topic, now_s)
        paces.pulls.add(1, now_s)
        paces.pull_ms.add(took_s * 1000, now_s)
        paces.pulled.add(count, now_s)

    def consumed(self, topic: str, ok: int, failed: int, took_s: float, now_s: float) -> None:
        """The listener answered: of these messages so many are done, and so many are to come again."""
        paces = self._of(topic, now_s)
        paces.calls.add(1, now_s)
        paces.call_ms.add(took_s * 1000, now_s)
        paces.ok.add(ok, now_s)
        paces.failed.add(failed, now_s)
        paces.failed_count += failed

    def table(self, now_s: float) -> dict[str, TopicPace]:
        """By topic."""
        return {
            topic: TopicPace(
                consume_failed_msgs=paces.failed_count,
                consume_failed_tps=paces.failed.rate(now_s),
                consume_ok_tps=paces.ok.rate(now_s),
                consume_rt=_ratio(paces.call_ms.rate(now_s), paces.calls.rate(now_s)),
                pull_rt=_ratio(paces.pull_ms.rate(now_s), paces.pulls.rate(now_s)),
                pull_tps=paces.pulled.rate(now_s),
            )
            for topic, paces in self._topics.items()
        }

    def _of(self, topic: str, now_s: float) -> _Topic:
        paces = self._topics.get(topic)
        if paces is None:
            paces = self._topics[topic] = _Topic(now_s)
        return paces


def _ratio(total: float, count: float) -> float:
    return total / count if count else 0.0
