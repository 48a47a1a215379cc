"""Functions of the application that see each request of a session, and its response.

They run in the event loop, so they must return soon. An exception in one is logged, and does not change the
request.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mqproof.impl.remoting.codes import RequestCode, response_name
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime.network import Address

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """A request that a session sends."""

    address: str
    """The broker or name server, `host:port`."""
    name: str
    """The name of the request code, such as SEND_MESSAGE_V2; its number if it has no name."""
    fields: Mapping[str, str]
    """The fields of the header, without those of a signature."""
    body_bytes: int


class RequestHook(Protocol):
    """Sees the requests of a session. Either method may do nothing."""

    def before(self, request: RequestSummary) -> None:
        """Called before the request is sent."""
        ...

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None:
        """Called after the response, or the failure.

        `outcome` is the name of the response code, such as SUCCESS, or the kind and text of the error. A
        one-way request has the outcome SENT.
        """
        ...


class Hooks:
    """The hooks of one session."""

    def __init__(self, hooks: Sequence[RequestHook] = ()) -> None:
        self._hooks = tuple(hooks)

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def before(self, address: Address, request: Command) -> RequestSummary:
        """Call the hooks before a request; return its summary for `after`."""
        summary = RequestSummary(str(address), _name(request.code), dict(request.fields), len(request.body))
        for hook in self._hooks:
            try:
                hook.before(summary)
            except Exception as error:  # a hook must not change what the client does
                _log.error("a hook failed before %s", summary.name, exc_info=error)
        return summary

    def after(self, summary: RequestSummary, outcome: Command | BaseException | None, seconds: float) -> None:
        """Call the hooks after a request; the outcome is the response, the error, or None for one-way."""
        text = "SENT"
        if isinstance(outcome, Command):
            text = response_name(outcome.code)
        elif outcome is not None:
            text = f"{type(outcome).__name__}: {outcome}"
        for hook in self._hooks:
            try:
                hook.after(summary, text, seconds)
            except Exception as error:  # as above
                _log.error("a hook failed after %s", summary.name, exc_info=error)


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return str(code)
