"""The configuration of a server: its properties file, overridden by the options that were given."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mqproof.impl.terminal.errors import fail, one_line
from mqproof.impl.terminal.inputs import read_text

if TYPE_CHECKING:  # imported late: a command loads only what it uses
    from mqproof.impl.broker.config import BrokerConfig
    from mqproof.impl.namesrv.config import NameServerConfig


def name_server_config(
    path: Path | None, *, metrics_port: int | None = None, **options: Any
) -> "NameServerConfig":
    """Return the name server's configuration. An option that is None changes nothing."""
    from mqproof.impl.metrics.config import METRICS_OPTIONS, MetricsConfig
    from mqproof.impl.namesrv.config import OPTIONS, NameServerConfig
    from mqproof.impl.runtime.properties import ConfigError, apply, parse

    given = {name: value for name, value in options.items() if value is not None}
    port = _metrics_on(metrics_port)
    if path is None:
        return NameServerConfig(**given, metrics=MetricsConfig(**port))
    try:
        properties = parse(read_text(path), str(path))
        _mention_unknown(path, tuple(key for key in properties if key not in {**OPTIONS, **METRICS_OPTIONS}))
        metrics = MetricsConfig(**{**apply(properties, METRICS_OPTIONS), **port})
        fields = {**apply(properties, OPTIONS), **given, "config_path": str(path)}
        return NameServerConfig(**fields, metrics=metrics)
    except (ConfigError, OSError) as error:
        fail("namesrv", one_line(error))


def broker_config(
    command: str,
    path: Path | None,
    *,
    store: Path | None,
    flush: str | None,
    role: str | None = None,
    peers: str | None = None,
    metrics_port: int | None = None,
    **options: Any,
) -> "BrokerConfig":
    """Return the broker's configuration. An option that is None leaves the file's value, or the default."""
    from mqproof.impl.broker.config import BrokerConfig, read, with_changes
    from mqproof.impl.replication.config import Role
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.store.config import FlushMode

    try:
        config = BrokerConfig()
        if path is not None:
            config, unknown = read(read_text(path), str(path))
            _mention_unknown(path, unknown)
        if flush is not None and flush not in list(FlushMode):
            raise ConfigError(f"--flush is {flush!r}, {' or '.join(FlushMode)} expected")
        if role is not None and role not in list(Role):
            raise ConfigError(f"--role is {role!r}, {' or '.join(Role)} expected")
        changes = {
            "store_directory": str(store) if store else None,
            "config_path": str(path) if path else None,
            "flush_mode": FlushMode(flush) if flush else None,
            "role": Role(role) if role else None,
            "is_member": True if peers else None,
            "peers": _peers(command, peers),
            **_metrics_on(metrics_port),
            **options,
        }
        return with_changes(config, changes)
    except (ConfigError, OSError) as error:
        fail(command, one_line(error))


def _metrics_on(port: int | None) -> dict[str, Any]:
    """Return the fields that --metrics-port sets; none if it is not given."""
    from mqproof.impl.metrics.config import Exporter

    return {} if port is None else {"exporter": Exporter.PROM, "metrics_port": port}


def _peers(command: str, text: str | None) -> Any:
    from mqproof.impl.dledger.config import parse_peers

    try:
        return parse_peers(text) if text else None
    except ValueError as error:
        fail(command, f"--peers is {text!r}, {error} expected")


def _mention_unknown(path: Path, keys: tuple[str, ...]) -> None:
    if keys:
        typer.echo(f"{path}: not used: {', '.join(keys)}", err=True)
