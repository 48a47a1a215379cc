"""Credentials and signatures of requests. See docs/reference/protocol/access-control.md, "Signatures"."""

import hmac
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from mqproof.impl.remoting.command import Command

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"
SIGNATURE: Final = "Signature"


@dataclass(frozen=True, slots=True)
class Credentials:
    """An account: its access key, the secret key shared with the broker, and an optional security token."""

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key})"  # secrets must not appear in logs

    def signed(self, request: Command) -> Command:
        """Return the request with the fields that identify and authenticate the account."""
        fields = {**request.fields, ACCESS_KEY: self.access_key}
        if self.security_token is not None:
            fields[SECURITY_TOKEN] = self.security_token
        fields[SIGNATURE] = signature(fields, request.body, self.secret_key)
        return msgspec.structs.replace(request, fields=fields)


def signature(fields: Mapping[str, str], body: bytes, secret_key: str) -> str:
    """Return the signature of a request: Base64 of HMAC-SHA1.

    It covers the values of all fields except the signature, in Java's order of their names, and then the
    body.
    """
    names = sorted((name for name in fields if name != SIGNATURE), key=_java_order)
    content = "".join(fields[name] for name in names).encode() + body
    return b64encode(hmac.digest(secret_key.encode(), content, "sha1")).decode()


def is_signed_with(secret_key: str, request: Command, *without: str) -> bool:
    """Return whether the request has the account's signature.

    The fields in `without` are left out, because the sender may not have signed them. The comparison takes
    constant time.
    """
    fields = {name: value for name, value in request.fields.items() if name not in without}
    expected = signature(fields, request.body, secret_key)
    return hmac.compare_digest(expected.encode(), request.fields.get(SIGNATURE, "").encode())


def _java_order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")
