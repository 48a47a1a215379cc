"""How fast a consumer pulls and consumes, per topic.

The caller passes the time. See docs/reference/protocol/clients.md, "Requests to clients".
"""

from mqproof.impl.remoting.bodies import TopicPace
from mqproof.impl.runtime.rate import Pace


class _Topic:
    def __init__(self, now_s: float) -> None:
        self.pulls, self.pull_ms, self.pulled = Pace(now_s), Pace(now_s), Pace(now_s)
        self.calls, self.call_ms = Pace(now_s), Pace(now_s)
        self.ok, self.failed = Pace(now_s), Pace(now_s)
        self.failed_count = 0


class ConsumeRates:
    """The rates of one consumer, by topic. Only topics that it reads have an entry, so there are few."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}

    def pulled(self, topic: str, count: int, took_s: float, now_s: float) -> None:
        """Record a pull that returned `count` messages."""
        rates = self._of(topic, now_s)
        rates.pulls.add(1, now_s)
        rates.pull_ms.add(took_s * 1000, now_s)
        rates.pulled.add(count, now_s)

    def consumed(self, topic: str, ok: int, failed: int, took_s: float, now_s: float) -> None:
        """Record the listener's result: the number of messages consumed, and of those to be redelivered."""
        rates = self._of(topic, now_s)
        rates.calls.add(1, now_s)
        rates.call_ms.add(took_s * 1000, now_s)
        rates.ok.add(ok, now_s)
        rates.failed.add(failed, now_s)
        rates.failed_count += failed

    def table(self, now_s: float) -> dict[str, TopicPace]:
        """Return the current rates, by topic."""
        return {
            topic: TopicPace(
                consume_failed_msgs=rates.failed_count,
                consume_failed_tps=rates.failed.rate(now_s),
                consume_ok_tps=rates.ok.rate(now_s),
                consume_rt=_ratio(rates.call_ms.rate(now_s), rates.calls.rate(now_s)),
                pull_rt=_ratio(rates.pull_ms.rate(now_s), rates.pulls.rate(now_s)),
                pull_tps=rates.pulled.rate(now_s),
            )
            for topic, rates in self._topics.items()
        }

    def _of(self, topic: str, now_s: float) -> _Topic:
        rates = self._topics.get(topic)
        if rates is None:
            rates = self._topics[topic] = _Topic(now_s)
        return rates


def _ratio(total: float, count: float) -> float:
    return total / count if count else 0.0
