"""What can be set on a console."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from mqproof.impl.remoting.address_server import NameServers
from mqproof.impl.remoting.signing import Credentials

PORT: Final = 8080


@dataclass(frozen=True, slots=True)
class ConsoleConfig:
    name_servers: NameServers
    host: str = "127.0.0.1"
    port: int = PORT
    allow_changes: bool = False
    """Whether pages may change the cluster. Otherwise every such request is refused."""
    allowed_hosts: Sequence[str] = ()
    """Host names by which browsers reach the console, beside localhost, IP addresses and `host`."""
    needs_login: bool = True
    """Whether a cluster with accounts, or an address that others can reach, requires a login."""
    account: Credentials | None = None
    """Signs the requests of the sampler, and those of the pages without login."""
    certificate: str | None = None
    """The file of the certificate for HTTPS; None serves HTTP."""
    private_key: str | None = None

    @property
    def is_public(self) -> bool:
        """Whether other machines can connect."""
        return not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether only processes of this machine can reach the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
