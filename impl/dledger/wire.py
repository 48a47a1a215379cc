"""DLedger's RPC as remoting commands: the code says what it is, the body is the message as JSON.

The frame's own header always says success; how it went stands in the body's `code`.
"""

from typing import Final, TypeVar

import msgspec

from mqproof.impl.dledger.codes import RequestCode
from mqproof.impl.dledger.rpc_bodies import (
    AppendRequest,
    AppendResponse,
    GetRequest,
    GetResponse,
    HeartBeatRequest,
    HeartBeatResponse,
    Message,
    MetadataRequest,
    MetadataResponse,
    PushRequest,
    PushResponse,
    TransferRequest,
    TransferResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.codes import ResponseCode as FrameCode
from mqproof.impl.remoting.command import Command, new_request

M = TypeVar("M", bound=Message)

REQUESTS: Final[dict[int, type[Message]]] = {
    RequestCode.METADATA: MetadataRequest,
    RequestCode.APPEND: AppendRequest,
    RequestCode.GET: GetRequest,
    RequestCode.VOTE: VoteRequest,
    RequestCode.HEART_BEAT: HeartBeatRequest,
    RequestCode.PUSH: PushRequest,
    RequestCode.LEADERSHIP_TRANSFER: TransferRequest,
}
RESPONSES: Final[dict[type[Message], type[Message]]] = {
    MetadataRequest: MetadataResponse,
    AppendRequest: AppendResponse,
    GetRequest: GetResponse,
    VoteRequest: VoteResponse,
    HeartBeatRequest: HeartBeatResponse,
    PushRequest: PushResponse,
    TransferRequest: TransferResponse,
}
_CODES: Final = {kind: code for code, kind in REQUESTS.items()}

_encoder = msgspec.json.Encoder()


def encode_request(request: Message) -> Command:
    """The command that asks it."""
    return new_request(_CODES[type(request)], body=_encoder.encode(request))


def decode_request(command: Command) -> Message:
    """What a command asks. Raises java_json.BodyError: its body is not that of its code."""
    return java_json.read(REQUESTS[command.code], command.body)


def encode_response(asked: Command, response: Message) -> Command:
    """The command that answers."""
    return asked.answer(FrameCode.SUCCESS, body=_encoder.encode(response))


def decode_response(request: Message, command: Command) -> Message:
    """The answer to a request. Raises java_json.BodyError: it is none."""
    if command.code != FrameCode.SUCCESS:
        raise java_json.BodyError(f"refused with {command.code}: {command.remark or 'no remark'}")
    return java_json.read(RESPONSES[type(request)], command.body)
