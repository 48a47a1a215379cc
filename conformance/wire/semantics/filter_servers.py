"""Rules about filter servers: the names and the form of functions, and what a pull through one delivers."""

from typing import Final

from mqproof.conformance.wire.model import Call, Expect, Strength
from mqproof.conformance.wire.operations.filter_servers import (
    FILTERED_PULL,
    MODULE,
    REGISTER_FILTER_SERVER,
    UPLOAD,
    UPLOADED,
    name_of,
)
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.semantics.rule import Rule, call, code

_ABSENT: Final = "f" * 64


def _refused(module: bytes) -> tuple[Call]:
    return (Call(valid(UPLOAD, module, className=name_of(module)), code(1)),)


def _pulled(expect: Expect, **fields: str) -> tuple[Call, ...]:
    return (*UPLOADED, call(FILTERED_PULL, expect, **fields))


def _advances(to: str, *, response: int = 0, records: int = 0) -> Expect:
    """Return the requirements on a response with that next offset, and so many messages."""
    return Expect((response,), values={"nextBeginOffset": to}, records=records)


RULES: Final = (
    Rule(
        REGISTER_FILTER_SERVER,
        400,
        "of an address without a port is refused",
        (call(REGISTER_FILTER_SERVER, Expect(codes=(), not_codes=(0,)), filterServerAddr="wire"),),
        strength=Strength.SHOULD,
    ),
    Rule(
        UPLOAD,
        400,
        "under another name than the SHA-256 of its module is refused",
        (call(UPLOAD, code(1), className=_ABSENT),),
    ),
    Rule(UPLOAD, 401, "of other bytes than a module is refused", _refused(b"wire")),
    Rule(UPLOAD, 402, "of the text form of a module is refused", _refused(b"(module)")),
    Rule(UPLOAD, 403, "of a module without the exports is refused", _refused(MODULE[:8])),
    Rule(UPLOAD, 404, "of a known function succeeds", (*UPLOADED, *UPLOADED)),
    Rule(
        FILTERED_PULL,
        400,
        "delivers what the function selects",
        _pulled(Expect(has=("apple", "avocado"), lacks=("berry",), records=2)),
    ),
    Rule(
        FILTERED_PULL,
        401,
        "with an unknown function requests its upload",
        (call(FILTERED_PULL, code(27), subscription=_ABSENT),),
    ),
    Rule(
        FILTERED_PULL,
        402,
        "whose function selects nothing advances",
        _pulled(_advances("2", response=20), queueOffset="1", maxMsgNums="1"),
    ),
    Rule(
        FILTERED_PULL,
        403,
        "whose function fails at the first message is refused",
        _pulled(code(1), queueOffset="3"),
    ),
    Rule(
        FILTERED_PULL,
        404,
        "whose function fails at a later message ends before it",
        _pulled(_advances("3", records=2), maxMsgNums="4"),
    ),
    Rule(FILTERED_PULL, 405, "at the end finds nothing", _pulled(code(19), queueOffset="4")),
    Rule(FILTERED_PULL, 406, "without the flag of a function is refused", _pulled(code(1), sysFlag="4")),
    Rule(
        FILTERED_PULL, 407, "of an unknown topic is answered by the broker", _pulled(code(17), topic="$gone")
    ),
)
