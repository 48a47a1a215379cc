"""tls.properties, RocketMQ's file of keys and certificates.

See docs/reference/protocol/access-control.md, "TLS".
"""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from mqproof.impl.runtime.disk import RealDisk
from mqproof.impl.runtime.properties import ConfigError, Property, boolean, one_of, parse
from mqproof.impl.runtime.security.secret_files import warn_if_exposed
from mqproof.impl.runtime.security.tls import Tls, TlsMode

T = TypeVar("T")

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "require": ssl.CERT_REQUIRED,
}


def load(path: str) -> Tls:
    """Return the TLS settings in the file at `path`. Raises OSError, and ConfigError as `read` does.

    Logs a warning if other users can read a private key.
    """
    return read(Path(path).read_text(encoding="utf-8"), path)


def read(text: str, where: str) -> Tls:
    """Return the settings in the text of a tls.properties; `where` names the file.

    A server needs a certificate to use TLS; a client needs `tls.enable`.

    Raises:
        ConfigError: a value that its key cannot have, or a key or certificate that cannot be used.
    """
    properties = parse(text, where)
    mode = _value(properties, "tls.server.mode", one_of({mode.value: mode for mode in TlsMode}))
    return Tls(
        mode or TlsMode.PERMISSIVE,
        _server(properties, where),
        _client(properties, where) if _value(properties, "tls.enable", boolean) else None,
    )


def _server(properties: Mapping[str, Property], where: str) -> ssl.SSLContext | None:
    if "tls.server.certPath" not in properties:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_own(context, properties, "tls.server")
    verifying = _value(properties, "tls.server.authClient", boolean)
    need = _value(properties, "tls.server.need.client.auth", one_of(_CLIENT_AUTH))
    if need is None:
        need = ssl.CERT_REQUIRED if verifying else ssl.CERT_NONE
    if need is not ssl.CERT_NONE:
        _load_trusted(context, properties, "tls.server", where)
        context.verify_mode = need
    return context


def _client(properties: Mapping[str, Property], where: str) -> ssl.SSLContext:
    """Return the TLS context of a client.

    It trusts every server unless `tls.client.authServer` is on. It does not compare host names, because
    brokers are known by their addresses.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    if _value(properties, "tls.client.authServer", boolean):
        _load_trusted(context, properties, "tls.client", where)
    else:
        context.verify_mode = ssl.CERT_NONE
    if "tls.client.certPath" in properties:
        _load_own(context, properties, "tls.client")
    return context


def _load_own(context: ssl.SSLContext, properties: Mapping[str, Property], prefix: str) -> None:
    certificate = properties[f"{prefix}.certPath"]
    key = properties.get(f"{prefix}.keyPath")
    warn_if_exposed(
        RealDisk(), (key or certificate).value
    )  # without a key file, the certificate's has the key
    password = properties.get(f"{prefix}.keyPassword")
    try:
        # Without a password, an encrypted key must be an error and not a prompt at the terminal.
        context.load_cert_chain(
            certificate.value, key.value if key else None, password.value if password else ""
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{certificate.where}: {prefix}.certPath and .keyPath cannot be used: {error}"
        ) from None


def _load_trusted(
    context: ssl.SSLContext, properties: Mapping[str, Property], prefix: str, where: str
) -> None:
    trusted = properties.get(f"{prefix}.trustCertPath")
    if trusted is None:
        raise ConfigError(f"{where}: {prefix}.trustCertPath is missing; it names the trusted certificates")
    try:
        context.load_verify_locations(trusted.value)
    except OSError as error:
        raise ConfigError(f"{trusted.where}: {prefix}.trustCertPath cannot be used: {error}") from None


def _value(properties: Mapping[str, Property], key: str, convert: Callable[[str], T]) -> T | None:
    given = properties.get(key)
    if given is None:
        return None
    try:
        return convert(given.value)
    except ValueError as error:
        raise ConfigError(f"{given.where}: {key} is {given.value!r}, {error} expected") from None
