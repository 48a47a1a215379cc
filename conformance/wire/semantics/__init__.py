"""Cases written by hand: what requests mean, one after the other. Their numbers begin at 400.

A rule is `Rule(operation, number, title, steps)`; each module has those of one part of the protocol. What is
numbered stays numbered: a case that goes leaves a hole.
"""

from collections.abc import Iterator

from mqproof.conformance.wire.model import Case
from mqproof.conformance.wire.semantics import administration, clients, messages, name_server, offsets
from mqproof.conformance.wire.semantics.rule import case


def semantic_cases() -> Iterator[Case]:
    for module in (messages, offsets, clients, administration, name_server):
        yield from map(case, module.RULES)
