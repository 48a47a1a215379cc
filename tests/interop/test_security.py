"""Tests Apache's administration with access control and TLS on our servers. See
docs/reference/protocol/access-control.md, "TLS"."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from mqproof.conformance.adapters.apache.java_clients import mqadmin
from mqproof.conformance.adapters.apache.servers import home
from mqproof.impl.runtime.network import Address

pytestmark = pytest.mark.apache

RULES = """
accounts:
- accessKey: the-admin
  secretKey: '87654321'
  admin: true
"""


@dataclass(frozen=True)
class Guarded:
    """Start our servers, which require an account and use TLS with clients that start it."""

    name_server: Address
    broker: Address


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    own = trustme.CA().issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(folder / "key.pem")
    own.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    tls = folder / "tls.properties"
    tls.write_text(f"tls.server.certPath={folder}/cert.pem\ntls.server.keyPath={folder}/key.pem\n")
    rules = folder / "plain_acl.yml"
    rules.write_text(RULES)
    config = folder / "broker.conf"
    config.write_text(f"aclEnable=true\naclFile={rules}\n")
    ports = ["--namesrv-port", "0", "--broker-port", "0"]
    files = ["--store", str(folder / "store"), "-c", str(config), "--tls", str(tls)]
    with subprocess.Popen(
        [sys.executable, "-m", "mqproof", "serve", *ports, *files], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            ready = dict(part.split("=") for part in server.stdout.readline().split()[1:])
            yield Guarded(Address.parse(ready["namesrv"]), Address.parse(ready["broker"]))
        finally:
            server.send_signal(signal.SIGTERM)


def made(release: str, folder: Path, guarded: Guarded, topic: str, *, tls: bool) -> str:
    """Return the output of mqadmin for creating a topic."""
    words = ("updateTopic", "-b", str(guarded.broker), "-t", topic)
    return mqadmin(release, folder, guarded.name_server, *words, jvm=(f"-Dtls.enable={str(tls).lower()}",))


def test_a_signed_request_over_tls_is_accepted(release: str, guarded: Guarded, tmp_path: Path) -> None:
    account = home(tmp_path) / "conf" / "tools.yml"
    account.write_text("accessKey: the-admin\nsecretKey: '87654321'\n")
    assert "success" in made(release, tmp_path, guarded, "Signed", tls=True)


def test_an_unsigned_request_is_refused_in_the_format_of_the_release(
    release: str, guarded: Guarded, tmp_path: Path
) -> None:
    said = made(release, tmp_path, guarded, "Unsigned", tls=False)
    assert "AclException: the request has no access key" in said
    assert f"CODE: {16 if release.startswith('5') else 1} " in said
