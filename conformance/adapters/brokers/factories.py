"""The targets of the suites that use one broker, by the names passed to `--suite` and `--target`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from mqproof.conformance.adapters.brokers.admin import BrokerAdmin, ReferenceAdmin
from mqproof.conformance.adapters.brokers.delivery import BrokerDelivery, ReferenceDelivery
from mqproof.conformance.adapters.brokers.environments import Environment, SimulatedEnvironment, environments
from mqproof.conformance.adapters.brokers.offsets import BrokerOffsets, ReferenceOffsets
from mqproof.conformance.adapters.brokers.ordering import BrokerOrdering, ReferenceOrdering
from mqproof.conformance.adapters.brokers.request_reply import BrokerRequestReply, ReferenceRequestReply
from mqproof.conformance.adapters.brokers.retry import BrokerRetry, ReferenceRetry
from mqproof.conformance.adapters.brokers.timers import BrokerTimers, ReferenceTimers
from mqproof.conformance.adapters.brokers.transactions import BrokerTransactions, ReferenceTransactions
from mqproof.conformance.adapters.python_class import adapter
from mqproof.conformance.engine.fault_commands import NO_COMMANDS, FaultCommands
from mqproof.conformance.engine.suite_definition import Suite, TargetFactory
from mqproof.conformance.engine.targets import MUTANT, PYTHON, REFERENCE
from mqproof.conformance.mutants import (
    admin,
    delivery,
    offsets,
    ordering,
    request_reply,
    retry,
    timers,
    transactions,
)
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.suites.admin.suite import ADMIN
from mqproof.conformance.suites.admin.target import AdminTarget
from mqproof.conformance.suites.delivery.suite import DELIVERY
from mqproof.conformance.suites.delivery.target import DeliveryTarget
from mqproof.conformance.suites.offsets.suite import OFFSETS
from mqproof.conformance.suites.offsets.target import OffsetsTarget
from mqproof.conformance.suites.ordering.suite import ORDERING
from mqproof.conformance.suites.ordering.target import OrderingTarget
from mqproof.conformance.suites.request_reply.suite import REQUEST_REPLY
from mqproof.conformance.suites.request_reply.target import RequestReplyTarget
from mqproof.conformance.suites.retry.suite import RETRY
from mqproof.conformance.suites.retry.target import RetryTarget
from mqproof.conformance.suites.timers.suite import TIMERS
from mqproof.conformance.suites.timers.target import TimersTarget
from mqproof.conformance.suites.transactions.suite import TRANSACTIONS
from mqproof.conformance.suites.transactions.target import TransactionsTarget


@dataclass(frozen=True, slots=True)
class Examinee:
    """A suite with its targets, its reference, and the mutants that test the suite."""

    suite: Suite
    protocol: type[object]
    """The protocol that a target must implement."""
    on: Callable[[Environment], Any]
    """Creates a target from an environment."""
    reference: TargetFactory
    mutants: Mapping[str, Mutant]
    """The mutants by name."""

    @contextmanager
    def targets(self, name: str, controls: FaultCommands = NO_COMMANDS) -> Iterator[TargetFactory]:
        """Yield the factory of the target with the given name.

        The names are `reference`, `impl`, `remoting://HOST:PORT`, `apache:LINE`, `mutant:NAME` and
        `python:MODULE:CLASS`. The servers run within the block. `controls` inject faults into a running
        broker that the wire cannot inject.

        Raises:
            UnknownTargetError: the name is none of these. TargetError: the servers did not start.
        """
        if name == REFERENCE:
            yield self.reference
            return
        if name.startswith(PYTHON):
            yield adapter(name, self.protocol)
            return
        with environments(name, self.mutants, controls) as make:
            yield lambda: self.on(make())

    def mutant(self, mutant: Mutant) -> Any:
        """Return a target that is our broker with this defect."""
        return self.on(SimulatedEnvironment(f"{MUTANT}{mutant.name}", mutant))


EXAMINEES: Final[dict[str, Examinee]] = {
    each.suite.name: each
    for each in (
        Examinee(OFFSETS, OffsetsTarget, BrokerOffsets, ReferenceOffsets, offsets.MUTANTS),
        Examinee(RETRY, RetryTarget, BrokerRetry, ReferenceRetry, retry.MUTANTS),
        Examinee(ORDERING, OrderingTarget, BrokerOrdering, ReferenceOrdering, ordering.MUTANTS),
        Examinee(DELIVERY, DeliveryTarget, BrokerDelivery, ReferenceDelivery, delivery.MUTANTS),
        Examinee(
            TRANSACTIONS,
            TransactionsTarget,
            BrokerTransactions,
            ReferenceTransactions,
            transactions.MUTANTS,
        ),
        Examinee(TIMERS, TimersTarget, BrokerTimers, ReferenceTimers, timers.MUTANTS),
        Examinee(
            REQUEST_REPLY,
            RequestReplyTarget,
            BrokerRequestReply,
            ReferenceRequestReply,
            request_reply.MUTANTS,
        ),
        Examinee(ADMIN, AdminTarget, BrokerAdmin, ReferenceAdmin, admin.MUTANTS),
    )
}
"""The examinees by the name of the suite."""
