"""Our client inside other libraries. The names in `__all__` are public and stable.

Each name needs the extra of its library. Python loads the library when the name is first used.

| names | extra | example |
|---|---|---|
| `register_kombu` | celery | examples/celery_tasks.py |
| `FastStreamBroker`, `FastStreamMessage`, `FastStreamResponse` | faststream | examples/faststream_app.py |
| `TaskiqBroker` | taskiq | examples/taskiq_broker.py |
| `Telemetry` | opentelemetry | examples/opentelemetry_tracing.py |
| `register_spark` | audit | examples/spark_writer.py |
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mqproof.impl.integrations.faststream_broker import FastStreamBroker
    from mqproof.impl.integrations.faststream_messages import FastStreamMessage, FastStreamResponse
    from mqproof.impl.integrations.kombu_transport import register_kombu
    from mqproof.impl.integrations.taskiq_broker import TaskiqBroker
    from mqproof.impl.integrations.telemetry import Telemetry
    from mqproof.spark_audit.sources.topics import register as register_spark

__all__ = [
    # Celery and kombu.
    "register_kombu",
    # FastStream.
    "FastStreamBroker",
    "FastStreamMessage",
    "FastStreamResponse",
    # taskiq.
    "TaskiqBroker",
    # OpenTelemetry.
    "Telemetry",
    # PySpark.
    "register_spark",
]

_KOMBU: Final = "mqproof.impl.integrations.kombu_transport"
_FASTSTREAM: Final = "mqproof.impl.integrations.faststream_broker"
_FASTSTREAM_MESSAGES: Final = "mqproof.impl.integrations.faststream_messages"

_PLACES: Final = MappingProxyType(
    {
        "register_kombu": (_KOMBU, "register_kombu", "celery"),
        "FastStreamBroker": (_FASTSTREAM, "FastStreamBroker", "faststream"),
        "FastStreamMessage": (_FASTSTREAM_MESSAGES, "FastStreamMessage", "faststream"),
        "FastStreamResponse": (_FASTSTREAM_MESSAGES, "FastStreamResponse", "faststream"),
        "TaskiqBroker": ("mqproof.impl.integrations.taskiq_broker", "TaskiqBroker", "taskiq"),
        "Telemetry": ("mqproof.impl.integrations.telemetry", "Telemetry", "opentelemetry"),
        "register_spark": ("mqproof.spark_audit.sources.topics", "register", "audit"),
    }
)
"""Public name to its module, its name there, and its extra."""


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Load a public name at its first use. Raises ImportError if its library is missing."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, there, extra = _PLACES[name]
        try:
            return getattr(import_module(module), there)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mqproof"):
                raise
            raise ImportError(f"{name} needs: pip install 'mqproof[{extra}]' ({error})") from error
