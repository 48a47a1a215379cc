import asyncio

import pytest

from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.subscriptions import Subscriptions, add_accepted
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import RefusalError
from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.runtime.simulated_loop import ManualClock, SimulatedLoop, run_simulated


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
