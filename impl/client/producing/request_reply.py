"""The messages of requests and replies: what a requester sends, and what its consumer answers.

See docs/reference/protocol/requests-and-replies.md.
"""

from collections.abc import Mapping
from uuid import UUID

from msgspec.structs import replace

from mqproof.impl.client.model import MessageError, ReceivedMessage
from mqproof.impl.remoting.message import (
    CLUSTER,
    CORRELATION_ID,
    DELAY,
    MESSAGE_TYPE,
    MESSAGE_TYPE_REPLY,
    REPLY_TO_CLIENT,
    TIME_TO_LIVE,
    Message,
)
from mqproof.impl.remoting.topic_names import reply_topic
from mqproof.impl.runtime.runtime import Runtime


def new_correlation_id(runtime: Runtime) -> str:
    """Return an id that no other request of any client has."""
    return str(UUID(int=runtime.random.getrandbits(128), version=4))


def with_request(message: Message, correlation_id: str, client_id: str, timeout_ms: int) -> Message:
    """Return the message as a request of this client.

    Raises MessageError when the message has a delay, because it would only be delivered later.
    """
    if message.properties.get(DELAY, "0") != "0":
        raise MessageError("a message that requests a reply cannot be delayed")
    own = {CORRELATION_ID: correlation_id, REPLY_TO_CLIENT: client_id, TIME_TO_LIVE: str(timeout_ms)}
    return replace(message, properties={**message.properties, **own})


def reply_to(request: ReceivedMessage, body: bytes, properties: Mapping[str, str] | None = None) -> Message:
    """Return the reply to a received message, with the application's own properties.

    Raises MessageError when the message requests no reply.
    """
    given = request.properties
    if absent := [name for name in (CLUSTER, CORRELATION_ID, REPLY_TO_CLIENT) if not given.get(name)]:
        raise MessageError(f"message {request.message_id} requests no reply: it has no property {absent[0]}")
    own = {
        MESSAGE_TYPE: MESSAGE_TYPE_REPLY,
        CORRELATION_ID: given[CORRELATION_ID],
        REPLY_TO_CLIENT: given[REPLY_TO_CLIENT],
    }
    if TIME_TO_LIVE in given:
        own[TIME_TO_LIVE] = given[TIME_TO_LIVE]
    return Message(reply_topic(given[CLUSTER]), body, {**(properties or {}), **own})
