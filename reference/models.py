"""The reference models by the name of their TLA+ module, and where TLC finds the bounded module."""

from typing import Any, Final

from reference import flush, guarantee, queue_choice, routing
from reference.model import Model

MODELS: Final[dict[str, Model[Any, Any]]] = {
    model.name: model for model in (flush.MODEL, routing.MODEL, queue_choice.MODEL, guarantee.MODEL)
}
