"""Injected anomalies: requests that are refused although they must succeed."""

from typing import Final

from mqproof.conformance.history.exact_delivery import TOPIC, ExactDelivery
from mqproof.conformance.history.injected.parts import Injected
from mqproof.conformance.history.lines import SendValue, Type


def _topic_forgotten(world: ExactDelivery) -> None:
    world.did("x1", SendValue(TOPIC, (world.message(),)), SendValue(), Type.FAIL, "TOPIC_NOT_EXIST")


def _does_not_serve(world: ExactDelivery) -> None:
    world.wait(10_000)
    world.did("x1", SendValue(TOPIC, (world.message(),)), SendValue(), Type.FAIL, "SYSTEM_BUSY")


INJECTED: Final = (
    Injected("C20", "topic-forgotten", _topic_forgotten),
    Injected("C21", "does-not-serve", _does_not_serve),
)
