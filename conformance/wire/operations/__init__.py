"""Tables of the operations, a module for each part of the protocol. `ALL` has them in the report's order."""

from typing import Final

from mqproof.conformance.wire.model import Operation
from mqproof.conformance.wire.operations import (
    administration,
    clients,
    filter_servers,
    inspection,
    messages,
    name_server,
    offsets,
    pop,
    replicas,
    users,
)

ALL: Final[tuple[Operation, ...]] = (
    *messages.OPERATIONS,
    *offsets.OPERATIONS,
    *clients.OPERATIONS,
    *administration.OPERATIONS,
    *inspection.OPERATIONS,
    *replicas.OPERATIONS,
    *pop.OPERATIONS,
    *name_server.OPERATIONS,
    *users.OPERATIONS,
    *filter_servers.OPERATIONS,
)
