"""The targets of the suites that ask one broker, by the names given to `--suite` and `--target`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from mqproof.conformance.admin.suite import ADMIN
from mqproof.conformance.admin.target import AdminTarget
from mqproof.conformance.controls import Controls
from mqproof.conformance.delivery.suite import DELIVERY
from mqproof.conformance.delivery.target import DeliveryTarget
from mqproof.conformance.offsets.suite import OFFSETS
from mqproof.conformance.offsets.target import OffsetsTarget
from mqproof.conformance.ordering.suite import ORDERING
from mqproof.conformance.ordering.target import OrderingTarget
from mqproof.conformance.retry.suite import RETRY
from mqproof.conformance.retry.target import RetryTarget
from mqproof.conformance.suite import Suite, TargetFactory
from mqproof.conformance.targets import MUTANT, NO_CONTROLS, PYTHON, REFERENCE
from mqproof.conformance.targets.adapter import adapter
from mqproof.conformance.targets.brokers import (
    admin_mutants,
    delivery_mutants,
    offsets_mutants,
    ordering_mutants,
    retry_mutants,
)
from mqproof.conformance.targets.brokers.admin import BrokerAdmin, ReferenceAdmin
from mqproof.conformance.targets.brokers.delivery import BrokerDelivery, ReferenceDelivery
from mqproof.conformance.targets.brokers.grounds import Ground, SimulatedGround, grounds
from mqproof.conformance.targets.brokers.offsets import BrokerOffsets, ReferenceOffsets
from mqproof.conformance.targets.brokers.ordering import BrokerOrdering, ReferenceOrdering
from mqproof.conformance.targets.brokers.retry import BrokerRetry, ReferenceRetry
from mqproof.conformance.targets.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Examinee:
    """What a suite examines, and what judges the suite."""

    suite: Suite
    protocol: type[Any]
    """What a target must offer."""
    on: Callable[[Ground], Any]
    """A broker somewhere as a target."""
    reference: TargetFactory
    mutants: Mapping[str, Mutant]
    """By name."""

    @contextmanager
    def targets(self, name: str, controls: Controls = NO_CONTROLS) -> Iterator[TargetFactory]:
        """The factory of the target called `reference`, `impl`, `remoting://HOST:PORT`, `apache:LINE`,
        `mutant:NAME` or `python:MODULE:CLASS`. What it needs runs within the block. `controls` do to a
        running broker what the wire cannot.

        Raises:
            UnknownTargetError: the name is none of these. TargetError: the servers did not come up.
        """
        if name == REFERENCE:
            yield self.reference
            return
        if name.startswith(PYTHON):
            yield adapter(name, self.protocol)
            return
        with grounds(name, self.mutants, controls) as make:
            yield lambda: self.on(make())

    def mutant(self, mutant: Mutant) -> Any:
        """Ours with this defect."""
        return self.on(SimulatedGround(f"{MUTANT}{mutant.name}", mutant))


EXAMINEES: Final[dict[str, Examinee]] = {
    each.suite.name: each
    for each in (
        Examinee(OFFSETS, OffsetsTarget, BrokerOffsets, ReferenceOffsets, offsets_mutants.MUTANTS),
        Examinee(RETRY, RetryTarget, BrokerRetry, ReferenceRetry, retry_mutants.MUTANTS),
        Examinee(ORDERING, OrderingTarget, BrokerOrdering, ReferenceOrdering, ordering_mutants.MUTANTS),
        Examinee(DELIVERY, DeliveryTarget, BrokerDelivery, ReferenceDelivery, delivery_mutants.MUTANTS),
        Examinee(ADMIN, AdminTarget, BrokerAdmin, ReferenceAdmin, admin_mutants.MUTANTS),
    )
}
"""By the suite's name."""
