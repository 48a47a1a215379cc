"""Mutants of name servers, of the routes and queue choice of producers, and of requests with replies."""

from typing import Any, Final

from mqproof.conformance.mutants import producers, request_reply, routing
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.broker.registration import Registrar
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.bodies import TopicRoute

_TARGET: Final = "routes-and-replies"
_register = Registrar.register

_HERE: Final = (
    routing.MUTANTS["only-live-record-removed"],
    routing.MUTANTS["queues-outlive-broker"],
    routing.MUTANTS["expired-too-early"],
    routing.MUTANTS["unchanged-not-refreshed"],
    routing.MUTANTS["nothing-expires"],
    producers.MUTANTS["last-broker-tried-again"],
    producers.MUTANTS["failures-not-rested"],
    *(each for each in request_reply.MUTANTS.values() if each.breaks != "SPEC-1"),
)


def _permissions_ignored(topic: str, route: TopicRoute) -> list[MessageQueue]:
    return [
        MessageQueue(topic, queues.broker_name, queue_id)
        for queues in route.queue_datas
        for queue_id in range(queues.write_queue_nums)
    ]


async def _register_once(registrar: Any) -> None:
    """Register when the broker starts, and never again."""
    if not getattr(registrar, "_has_registered", False):
        registrar._has_registered = True
        await _register(registrar)


MUTANTS: Final = (
    *(as_of_target(each, _TARGET, {}) for each in _HERE),
    Mutant(
        "PermissionsIgnored",
        "a producer sends to queues without write permission",
        _TARGET,
        "MasterOnlyWrites",
        "mqproof.impl.client.producing.producer:publish_queues",
        _permissions_ignored,
    ),
    Mutant(
        "RegistersOnce",
        "a broker registers when it starts, and never again",
        _TARGET,
        "EventuallyRouted",
        "mqproof.impl.broker.registration:Registrar.register",
        _register_once,
    ),
)
