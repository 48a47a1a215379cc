"""Ordinary tests accept an application that charges twice. A chaos proxy shows the bug in a second.

pip install mqproof pytest
python -m pytest examples/chaos_app

Behind the proxy, the answer to a send is sometimes lost, and the producer sends the order again, as
RocketMQ's producers do. The specification permits everything that the proxy does, and the proxy checks that
at the end of its block. So the application is wrong.
"""

import asyncio
from collections.abc import Callable

import pytest
from payments import Identity, Payments, by_number, by_place, send_orders

from mqproof.testing import Chaos, EmbeddedBroker, broker

BUGGY_AND_FIXED = pytest.mark.parametrize("identity", [by_place, by_number])


async def until(is_done: Callable[[], bool], b: EmbeddedBroker) -> None:
    """Let virtual time pass until the condition holds."""
    for _ in range(100):
        if is_done():
            return
        await b.clock.advance(seconds=10)
    raise AssertionError("the application does not finish")


@BUGGY_AND_FIXED
def test_every_order_is_charged_once(identity: Identity) -> None:
    async def run() -> None:
        payments = Payments(identity)
        async with broker() as b, b.client() as session, payments.running(session):
            stored = await send_orders(session, 50)
            await until(lambda: stored <= payments.charges.keys(), b)
        assert set(payments.charges.values()) == {1}

    asyncio.run(run())


@BUGGY_AND_FIXED
def test_an_order_that_is_delivered_again_is_charged_once(identity: Identity) -> None:
    async def run() -> None:
        payments = Payments(identity)
        async with broker() as b, b.client() as producer:
            await send_orders(producer, 50)
            b.fail_next("commit", times=1000)  # so that the second instance starts from the beginning
            async with b.client() as first, payments.running(first):
                await until(lambda: payments.received == 50, b)
            async with b.client() as second, payments.running(second):
                await until(lambda: payments.received == 100, b)
        assert set(payments.charges.values()) == {1}

    asyncio.run(run())


@pytest.mark.parametrize(
    "identity", [pytest.param(by_place, marks=pytest.mark.xfail(reason="the bug", strict=True)), by_number]
)
def test_every_order_is_charged_once_under_chaos(identity: Identity) -> None:
    async def run() -> None:
        payments = Payments(identity)
        faults = ("send_answer_lost=0.2", "pull_delayed=0.2", "commit_lost=0.5", "rebalance_storm=0.5")
        async with (
            broker() as b,
            Chaos(b, *faults, seed=7) as chaos,
            chaos.client() as session,
            payments.running(session),
        ):
            stored = await send_orders(session, 50)
            chaos.calm()
            await until(lambda: stored <= payments.charges.keys(), b)
        assert set(payments.charges.values()) == {1}

    asyncio.run(run())
