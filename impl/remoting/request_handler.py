"""Builds a handler that never raises from a table of request processors.

A processor is a function or coroutine function of (request, channel). It returns the response, returns None
for "no response", or raises. Every exception becomes the protocol's error response. A processor of very
frequent requests may return a `Later`, which costs less than a task.
"""

import logging
from collections.abc import Awaitable, Mapping

from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import HeaderError
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.remoting.later import Later

_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """Raised by a processor to respond with an error code: the request was understood and refused."""

    def __init__(self, code: ResponseCode, remark: str) -> None:
        super().__init__(f"{code.name}: {remark}")
        self.code = code
        self.remark = remark


def handler(processors: Mapping[int, Handler]) -> Handler:
    """Return the handler that passes each request to the processor of its code."""

    def handle(request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        processor = processors.get(request.code)
        if processor is None:
            remark = f" request type {request.code} not supported"
            return request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        try:
            reply = processor(request, channel)
        except Exception as error:  # an error in a processor must not end the server
            return error_answer(request, error)
        if reply is None or isinstance(reply, (Command, Later)):
            return reply
        return _guarded(request, reply)

    return handle


async def _guarded(request: Command, reply: Awaitable[Reply]) -> Reply:
    try:
        return await reply
    except Exception as error:  # an error in a processor must not end the server
        return error_answer(request, error)


def error_answer(request: Command, error: Exception) -> Command:
    """Return the response for what a processor raised, and log an error that is not a refusal."""
    if isinstance(error, RefusedError):
        return request.answer(error.code, remark=error.remark)
    if isinstance(error, (HeaderError, BodyError)):
        return request.answer(ResponseCode.SYSTEM_ERROR, remark=str(error))
    _log.error("request %d failed", request.code, exc_info=error)
    return request.answer(ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")


def refuse_everything(request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a Handler's signature
    """The handler of a peer that serves no requests."""
    remark = f" request type {request.code} not supported"
    return request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
