"""Operations of filter servers: registration at a broker, uploads of functions, and pulls through functions.

The uploaded function selects the messages of the topic `$filtered` that begin with `a`, and no message that
begins with `b`. It fails at every other message.
"""

import hashlib
from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Call, Expect, Kind, Operation, Server
from mqproof.conformance.wire.operations.messages import PULLED
from mqproof.conformance.wire.requests import valid

MODULE: Final = bytes.fromhex(
    "0061736d01000000"
    "010e0260017f017f60047f7f7f7f017f03030200010503010001"  # types, functions, one page of memory
    "071f03066d656d6f7279020008616c6c6f636174650000076d6174636865730001"  # memory, allocate, matches
    "0a2202040041000b"  # allocate returns 0
    "1b01017f20022d00002104"  # matches: the first byte of the body
    "200441e2004b0440000b"  # more than b is a failure
    "200441e100460b"  # whether it is a
)
"""A function in WebAssembly. The test of this module has its text form."""
BODIES: Final = (b"apple", b"berry", b"avocado", b"cherry")
"""The messages of the topic `$filtered`, in its only queue."""


def name_of(module: bytes) -> str:
    """Return the name that an upload of the module must have."""
    return hashlib.sha256(module).hexdigest()


REGISTER_FILTER_SERVER: Final = Operation(
    301, "REGISTER_FILTER_SERVER", "register-filter-server", Server.BROKER, chapters.FILTER_SERVERS,
    fields("filterServerAddr S! $filter_address"),
    # Code 1 of our broker: its filterServerEnable is false.
    expect=Expect(lacking=(1,), fields={"brokerId": Kind.LONG}, values={"brokerName": "$broker"}),
)  # fmt: skip
UPLOAD: Final = Operation(
    302, "REGISTER_MESSAGE_FILTER_CLASS", "upload-function", Server.FILTER_SERVER, chapters.FILTER_SERVERS,
    fields(f"""
        consumerGroup S! $group
        topic         S! $filtered
        className     S! {name_of(MODULE)}
    """),
    MODULE,
)  # fmt: skip
UPLOADED: Final = (Call(valid(UPLOAD)),)
"""Uploads the function; a known one stays as it is."""
FILTERED_PULL: Final = Operation(
    11, "PULL_MESSAGE", "filtered-pull", Server.FILTER_SERVER, chapters.FILTER_SERVERS,
    fields(f"""
        consumerGroup        S! $group
        topic                S! $filtered
        queueId              I! 0
        queueOffset          L! 0
        maxMsgNums           I! 3
        sysFlag              I! 12
        commitOffset         L! 0
        suspendTimeoutMillis L! 0
        subVersion           L! 0
        subscription         S! {name_of(MODULE)}
        expressionType       S? TAG
    """),
    expect=Expect(fields=PULLED.fields, records=2),
    before=UPLOADED,
)  # fmt: skip

OPERATIONS: Final = (REGISTER_FILTER_SERVER, UPLOAD, FILTERED_PULL)
