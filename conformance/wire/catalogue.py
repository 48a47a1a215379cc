"""All wire cases in the order of the report, and the selection of cases."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from mqproof.conformance.wire.code_cases import code_cases
from mqproof.conformance.wire.frame_cases import frame_cases
from mqproof.conformance.wire.model import Case, Since
from mqproof.conformance.wire.operations import ALL
from mqproof.conformance.wire.semantics import semantic_cases
from mqproof.conformance.wire.systematic import systematic


def _all() -> tuple[Case, ...]:
    cases = [case for operation in ALL for case in systematic(operation)]
    cases += [*semantic_cases(), *frame_cases(), *code_cases()]
    return tuple(cases)


CASES: Final = _all()


def choose(globs: Iterable[str] = (), since: Since = Since.V5) -> tuple[Case, ...]:
    """Return the cases whose id matches one of the globs (all, without globs).

    Only rules of that release or older are included.
    """
    globs = tuple(globs) or ("*",)
    return tuple(
        case for case in CASES if case.since <= since and any(fnmatchcase(case.id, glob) for glob in globs)
    )
