"""RocketMQ specified, model-checked, implemented, attacked and audited under one catalogue of invariants.

    from mqproof import Producer, connect, new_message

Applications use the names in `__all__`; `mqproof.client` has more of them. Each part of the project is a
subpackage. Start with `mqproof.impl` for the broker and the client, or with `mqproof.spec` for the
specification that every other part checks. Importing this package loads none of them: Python loads a public
name at its first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqproof.client import (
        BlockingClient,
        ClientError,
        LitePullConsumer,
        Message,
        MessageError,
        MessageQueue,
        Producer,
        PullConsumer,
        PushConsumer,
        ReceivedMessage,
        Refused,
        RetryLater,
        Sent,
        Unknown,
        connect,
        new_message,
    )

    __version__: str

__all__ = [
    "__version__",
    "connect",
    "Message",
    "new_message",
    "Producer",
    "Sent",
    "Refused",
    "Unknown",
    "PushConsumer",
    "ReceivedMessage",
    "RetryLater",
    "LitePullConsumer",
    "PullConsumer",
    "BlockingClient",
    "MessageQueue",
    "ClientError",
    "MessageError",
]


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Load a public name at its first use."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "__version__":
            from importlib.metadata import version

            value = version("mqproof")
        else:
            from mqproof import client

            value = getattr(client, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
