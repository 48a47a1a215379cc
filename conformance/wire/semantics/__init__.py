"""Handwritten cases about the meaning of requests. Their numbers begin at 400.

A rule is `Rule(operation, number, title, steps)`; each module has the rules of one part of the protocol.
Numbers are stable: a removed case leaves a gap.
"""

from collections.abc import Iterator

from mqproof.conformance.wire.model import Case
from mqproof.conformance.wire.semantics import (
    administration,
    clients,
    filter_servers,
    messages,
    name_server,
    offsets,
)
from mqproof.conformance.wire.semantics.rule import case


def semantic_cases() -> Iterator[Case]:
    for module in (messages, offsets, clients, administration, name_server, filter_servers):
        yield from map(case, module.RULES)
