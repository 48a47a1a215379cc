"""Our client inside other libraries. The names in `__all__` are public and stable.

Each name needs the extra of its library. Python loads the library when the name is first used.

| names | extra | example |
|---|---|---|
| `register_kombu`, `KombuTransport` | celery | examples/celery_tasks.py |
| `FastStreamBroker`, `FastStreamMessage`, `FastStreamResponse` | faststream | examples/faststream_app.py |
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mqproof.impl.integrations.faststream_broker import FastStreamBroker
    from mqproof.impl.integrations.faststream_messages import FastStreamMessage, FastStreamResponse
    from mqproof.impl.integrations.kombu_transport import KombuTransport, register_kombu

__all__ = [
    # Celery and kombu.
    "register_kombu",
    "KombuTransport",
    # FastStream.
    "FastStreamBroker",
    "FastStreamMessage",
    "FastStreamResponse",
]

_MODULES: Final = MappingProxyType(
    {
        "register_kombu": "kombu_transport",
        "KombuTransport": "kombu_transport",
        "FastStreamBroker": "faststream_broker",
        "FastStreamMessage": "faststream_messages",
        "FastStreamResponse": "faststream_messages",
    }
)


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Load a public name at its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"mqproof.impl.integrations.{_MODULES[name]}"), name)
