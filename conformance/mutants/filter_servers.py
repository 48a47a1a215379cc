"""Mutants of a filter server. Each one names the wire case that must detect it.

Importing this module needs no sandbox. A server with a mutant needs the extra `mqproof[filter]`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.loopback_servers import loopback_servers
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.filter_server.decisions import RunError, Text, selected
from mqproof.impl.filtering.function_names import function_name
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production

Matches = Callable[[Text], bool]


@contextmanager
def serving() -> Iterator[str]:
    """Yield the name server address of our cluster with a filter server, in a thread until the block ends."""
    from mqproof.impl.filter_server.server import FilterServer, FilterServerConfig

    config = BrokerConfig(port=0, filter_servers=True)
    with expected_warnings("mqproof.impl"), loopback_servers(lambda _: (config,)) as servers:
        server = FilterServer(FilterServerConfig(servers.addresses[0]), production(AsyncioNetwork()))
        servers.run(server.start())
        try:
            yield str(servers.name_server)
        finally:
            servers.run(server.stop())


# Decisions


def _each(messages: Iterable[Text], matches: Matches, failed: bool) -> Iterator[bool]:
    """Yield each decision; a failure counts as the given one."""
    for message in messages:
        try:
            yield matches(message)
        except RunError:
            yield failed


def _failure_rejects(messages: Iterable[Text], matches: Matches) -> list[bool]:
    return list(_each(messages, matches, failed=False))


def _failure_selects(messages: Iterable[Text], matches: Matches) -> list[bool]:
    return list(_each(messages, matches, failed=True))


def _rest_skipped(
    body: bytes, select: Callable[[Iterable[Text]], list[bool]]
) -> tuple[list[bytes], int | None]:
    return selected(body, select)[0], None


def _all_selected(messages: Iterable[Text], matches: Matches) -> list[bool]:
    return [matches(message) or True for message in messages]


# Uploads


class _AnyName(str):
    """Equals every name."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, str)


def _any_name(module: bytes) -> str:
    return _AnyName(function_name(module))


def _any_interface(_module: object) -> None:
    """Accept what a module imports and exports."""


_SERVER: Final = "mqproof.impl.filter_server.server"
_FUNCTIONS: Final = "mqproof.impl.filter_server.functions"

OF_DECISIONS: Final = {
    mutant.name: mutant
    for mutant in (
        Mutant(
            "failure-rejects", "a message at which a function fails counts as not selected", "DELIV-10",
            f"{_FUNCTIONS}:decided", _failure_rejects,
        ),
        Mutant(
            "failure-selects", "a message at which a function fails counts as selected", "DELIV-10",
            f"{_FUNCTIONS}:decided", _failure_selects,
        ),
        Mutant(
            "failed-rest-skipped", "the next offset of a response skips messages that were not examined",
            "DELIV-10", f"{_SERVER}:selected", _rest_skipped,
        ),
        Mutant(
            "function-ignored", "the broker's messages are delivered whatever the function decides",
            "DELIV-10", f"{_FUNCTIONS}:decided", _all_selected,
        ),
    )
}  # fmt: skip
"""Mutants that deliver other messages than the function selects."""

CASES_OF: Final = {
    "failure-rejects": "remoting/filtered-pull/403",
    "failure-selects": "remoting/filtered-pull/403",
    "failed-rest-skipped": "remoting/filtered-pull/404",
    "function-ignored": "remoting/filtered-pull/400",
}
"""The wire case that detects each mutant of `OF_DECISIONS`."""

OF_UPLOADS: Final = {
    mutant.name: mutant
    for mutant in (
        Mutant(
            "any-function-name", "an upload may have any name, such as that of another group's function",
            "remoting/upload-function/400", f"{_SERVER}:function_name", _any_name,
        ),
        Mutant(
            "any-function-interface", "a module with imports, or without the exports, is accepted",
            "remoting/upload-function/403", f"{_FUNCTIONS}:_require_interface", _any_interface,
        ),
    )
}  # fmt: skip
"""Mutants of uploads; the wire case with the id in `breaks` detects each one."""

MUTANTS: Final = {**OF_DECISIONS, **OF_UPLOADS}
