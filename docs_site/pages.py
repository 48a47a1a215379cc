"""The generated pages, and the function that writes each one."""

from collections.abc import Callable
from typing import Final

from docs_site import api, catalogue, commands, configuration, metrics, request_limits

PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/api.md": api.page,
    "reference/catalogue.md": catalogue.page,
    "reference/commands.md": commands.page,
    "reference/configuration.md": configuration.page,
    "reference/metrics.md": metrics.page,
    "reference/request-limits.md": request_limits.page,
}
