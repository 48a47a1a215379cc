"""Tests subscriptions: their form in heartbeats, and the check of an expression."""

import asyncio
import logging

import pytest

from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.subscriptions import Subscriptions, add_accepted, require_accepted
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, RefusalError
from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.runtime.simulated_loop import EPOCH_US, ManualClock, SimulatedLoop, run_simulated


class _Slow(GroupRequests):
    """A broker that takes a second for its answer, which is `refusal` or acceptance."""

    def __init__(self, refusal: RefusalError | None) -> None:
        self.refusal = refusal

    async def check(self, subscription: Subscription) -> None:  # noqa: ARG002
        await asyncio.sleep(1)
        if self.refusal:
            raise self.refusal

    async def require_sole(self, topics: object) -> None:
        pass


@pytest.mark.parametrize("refusal", [None, RefusalError("not here", 1)])
def test_a_new_expression_is_used_only_after_the_broker_has_accepted_it(refusal: RefusalError | None) -> None:
    async def scenario() -> tuple[str, str]:
        subscriptions = Subscriptions(ManualClock())
        subscriptions.add("T", "A")
        change = asyncio.create_task(
            add_accepted(_Slow(refusal), subscriptions, "T", MessageSelector.sql("price > 5"))
        )
        await asyncio.sleep(0.5)
        while_asked = subscriptions.selector_of("T").expression
        await asyncio.wait([change])
        assert change.exception() is refusal
        return while_asked, subscriptions.selector_of("T").expression

    assert run_simulated(scenario(), SimulatedLoop()) == ("A", "A" if refusal else "price > 5")


NOW_MS = EPOCH_US // 1000


@pytest.mark.parametrize(
    ("text", "subscription"),
    [
        ("*", Subscription("T", "*", sub_version=NOW_MS)),
        ("", Subscription("T", "*", sub_version=NOW_MS)),
        (" || ", Subscription("T", "*", sub_version=NOW_MS)),
        ("B|| A||B", Subscription("T", "A || B", [65, 66], ["A", "B"], sub_version=NOW_MS)),
        ("* || A", Subscription("T", "* || A", [42, 65], ["*", "A"], sub_version=NOW_MS)),
    ],
)
def test_tags_are_sorted_and_have_their_codes(text: str, subscription: Subscription) -> None:
    subscriptions = Subscriptions(ManualClock())
    subscriptions.add("T", text)
    assert subscriptions.all() == [subscription]
    assert subscriptions.get("T") == subscription
    assert subscriptions.selector_of("T") == MessageSelector(subscription.sub_string or "")


def test_an_expression_and_a_function_are_subscriptions_of_their_own_kinds() -> None:
    subscriptions = Subscriptions(ManualClock())
    price, function = MessageSelector.sql("price > 5"), MessageSelector.function(b"\0asm\1\0\0\0")
    subscriptions.add("T", price)
    subscriptions.add("U", function)
    assert subscriptions.all() == [
        Subscription("T", "price > 5", expression_type="SQL92", sub_version=NOW_MS),
        Subscription("U", function.expression, class_filter_mode=True, sub_version=NOW_MS),
    ]
    assert subscriptions.selectors() == {"T": price, "U": function}
    assert subscriptions.topics() == ["T", "U"]
    subscriptions.remove("T")
    subscriptions.remove("T")
    assert subscriptions.topics() == ["U"]
    assert subscriptions.get("T") is None
    assert subscriptions.selector_of("T") == MessageSelector("*")
    with pytest.raises(ValueError, match="the topic 'a b'"):
        subscriptions.add("a b")


class _Asked(GroupRequests):
    """A broker that records the questions, and does not answer those about subscriptions."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def check(self, subscription: Subscription) -> None:
        self.asked.append(subscription.topic)
        raise ClientError("silent")

    async def require_sole(self, topics: object) -> None:
        self.asked.append(topics)


def test_only_an_expression_is_checked_and_a_silent_broker_does_not_refuse_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls, subscriptions = _Asked(), Subscriptions(ManualClock())

    async def main() -> None:
        await require_accepted(calls, subscriptions, "absent")
        await add_accepted(calls, subscriptions, "U", "A")
        await add_accepted(calls, subscriptions, "T", MessageSelector.sql("price > 5"))

    with caplog.at_level(logging.INFO):
        run_simulated(main(), SimulatedLoop())
    assert calls.asked == [["U"], "T", ["T"]]
    assert subscriptions.topics() == ["U", "T"]
    assert caplog.messages == ["the expression for T is not checked: silent"]
