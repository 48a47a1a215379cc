"""Mutants of how routes reach a client, used to judge the convergence suite.

Each replaces one rule by a wrong one.
"""

from typing import Final

from mqproof.conformance.mutants.mutant import Mutant
from mqproof.impl.broker.registration import Registrar
from mqproof.impl.client.connection.routes import Routes

_register = Registrar.register


async def _at_the_first_only(registrar: Registrar) -> None:
    registrar._name_servers = registrar._name_servers[:1]
    await _register(registrar)


async def _once(registrar: Registrar) -> None:
    """Registers when the broker starts, and not again."""
    if not registrar.__dict__.setdefault("registered", False):
        registrar.__dict__["registered"] = True
        await _register(registrar)


async def _no_refresh(_routes: Routes) -> None:
    pass


_REGISTER: Final = "mqproof.impl.broker.registration:Registrar.register"

MUTANTS: Final[dict[str, Mutant]] = {
    each.name: each
    for each in (
        Mutant("registers-once", "a broker registers only when it starts", "ROUTE-7", _REGISTER, _once),
        Mutant(
            "registers-at-one-server", "a broker registers at its first name server only", "ROUTE-7",
            _REGISTER, _at_the_first_only,
        ),
        Mutant(
            "route-never-refreshed", "a client never requests a known route again", "ROUTE-3",
            "mqproof.impl.client.connection.routes:Routes.refresh_all", _no_refresh,
        ),
    )
}  # fmt: skip
"""The mutants by name."""
