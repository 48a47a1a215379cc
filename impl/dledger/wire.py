"""DLedger's RPC as remoting commands: the code is the kind of the message, the body is the message as JSON.

The header of the frame of an answer always says success; the real result is the `code` in the body.
"""

from typing import Final, TypeVar

import msgspec

from mqproof.impl.dledger.codes import RequestCode, ResponseCode
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
_ANSWERED: Final = frozenset({FrameCode.SUCCESS, ResponseCode.SUCCESS})
"""The codes in the frames of answers: ours have 0, those of released members 200."""
_CODES: Final = {kind: code for code, kind in REQUESTS.items()}

_encoder = msgspec.json.Encoder()


def encode_request(request: Message) -> Command:
    """Return the command for a request."""
    return new_request(_CODES[type(request)], body=_encoder.encode(request))


def decode_request(command: Command) -> Message:
    """Return the request in a command. Raises java_json.BodyError when the body does not fit the code."""
    return java_json.read(REQUESTS[command.code], command.body)


def encode_response(asked: Command, response: Message) -> Command:
    """Return the command for the response to a request."""
    return asked.answer(FrameCode.SUCCESS, body=_encoder.encode(response))


def decode_response(request: Message, command: Command) -> Message:
    """Return the response to a request. Raises java_json.BodyError when the command is not one."""
    if command.code not in _ANSWERED:
        raise java_json.BodyError(f"refused with {command.code}: {command.remark or 'no remark'}")
    return java_json.read(RESPONSES[type(request)], command.body)
