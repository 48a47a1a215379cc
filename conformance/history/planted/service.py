"""What is refused that must not be."""

from typing import Final

from mqproof.conformance.history.exact_delivery import TOPIC, Perfect
from mqproof.conformance.history.lines import SendValue, Type
from mqproof.conformance.history.planted.parts import Planted


def _topic_forgotten(world: Perfect) -> None:
    world.did("x1", SendValue(TOPIC, (world.message(),)), SendValue(), Type.FAIL, "TOPIC_NOT_EXIST")


def _does_not_serve(world: Perfect) -> None:
    world.wait(10_000)
    world.did("x1", SendValue(TOPIC, (world.message(),)), SendValue(), Type.FAIL, "SYSTEM_BUSY")


PLANTED: Final = (
    Planted("C20", "topic-forgotten", _topic_forgotten),
    Planted("C21", "does-not-serve", _does_not_serve),
)
