"""Serves the console over HTTP or HTTPS: its port, its sampler, and the limits of its connections."""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mqproof.impl.client.model import ClientError
from mqproof.impl.console.application import create_app
from mqproof.impl.console.cluster_access import Protection
from mqproof.impl.console.config import ConsoleConfig
from mqproof.impl.console.visit import Console
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import Runtime

_log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 128
IDLE_S: Final = 15.0
"""How long a connection may take from its begin, or from one response, to a whole request."""
HEADER_BYTES_MAX: Final = 32 * 1024
_CANCEL_AGAIN_S: Final = 0.1
STOP_S: Final = 5
"""How long requests in progress may take when the console stops."""


class ConsoleServer:
    """One console, with its port and its sampler."""

    def __init__(self, config: ConsoleConfig, runtime: Runtime) -> None:
        self._config = config
        self.console = Console(config, runtime)
        self._server: _Server | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> Address:
        """Listen, and begin to sample. Returns the address.

        Raises:
            ConfigError: the address is public and no login is possible, or the certificate cannot be used.
            OSError: the port is in use, or the address is not one of this machine.
        """
        await self._check_exposure()
        app = create_app(self.console)
        config = uvicorn.Config(
            app,
            http=_BoundedConnection,
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=int(IDLE_S),
            timeout_graceful_shutdown=STOP_S,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
            ssl_certfile=self._config.certificate,
            ssl_keyfile=self._config.private_key,
        )
        try:
            config.load()
        except (ssl.SSLError, OSError) as error:
            files = f"{self._config.certificate}, {self._config.private_key}"
            raise ConfigError(f"the certificate cannot be used: {files}: {error}") from None
        listening = _listen(self._config.host, self._config.port)
        self._server = server = _Server(config)
        supervisor = self.console.runtime.supervisor
        self._tasks = [
            supervisor.run("console", server.serve([listening])),
            supervisor.run("samples", self.console.sampler.run()),
        ]
        host, port = listening.getsockname()[:2]
        return Address(f"[{host}]" if ":" in host else host, port)

    async def stop(self) -> None:
        """Close the port, and end the requests in progress after a while."""
        if self._server is None:
            return
        self._server.should_exit = True
        serving, sampling = self._tasks
        while not sampling.done():
            # A cancellation can be lost: before Python 3.12, `asyncio.wait_for` drops one that arrives
            # together with the result.
            sampling.cancel()
            await asyncio.wait([sampling], timeout=_CANCEL_AGAIN_S)
        await asyncio.wait([serving])

    async def _check_exposure(self) -> None:
        """Check who could use the console from other machines."""
        config = self._config
        if not config.is_public:
            return
        if not config.needs_login:
            _log.warning(
                "%s is public and there is no login: every client that can connect has access", config.host
            )
        else:
            with suppress(ClientError):
                if await self.console.protection() is Protection.OPEN:
                    raise ConfigError(
                        f"--host {config.host} is public, and the brokers check no accounts, so no login "
                        "is possible: use --host 127.0.0.1, turn on aclEnable at the brokers, or give "
                        "--no-login behind a proxy that checks its users"
                    )
        if config.certificate is None:
            _log.warning(
                "%s is public and serves HTTP: give --certificate and --private-key, or use a proxy with TLS",
                config.host,
            )


class _Server(uvicorn.Server):
    """Leaves signals to the process, which stops its servers in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _BoundedConnection(H11Protocol):
    """Closes a connection on which no whole request arrives in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def _watch(self) -> None:
        self._seen = self.cycle
        asyncio.get_running_loop().call_later(IDLE_S, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        waits = self.cycle is None or self.cycle.response_complete
        if waits and self.cycle is self._seen:
            self.transport.close()
        else:
            self._watch()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises OSError with the address in its message."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_MAX)
    except socket.gaierror as error:
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise OSError(f"cannot listen on {host}:{port}: {reason}") from None
