"""Starts a name server and a broker for the tests, on free ports and with an empty store."""

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def namesrv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of the name server."""
    store = tmp_path_factory.mktemp("broker")
    serve = [sys.executable, "-m", "mqproof", "serve", "--store", str(store)]
    ports = ["--namesrv-port", "0", "--broker-port", "0"]
    with subprocess.Popen([*serve, *ports], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()  # ready namesrv=127.0.0.1:39817 broker=127.0.0.1:41211
        assert ready.startswith("ready "), "the broker did not start"
        address = ready.split()[1].removeprefix("namesrv=")
        try:
            create_topic(address, "invoices")
            yield address
        finally:
            process.terminate()


def create_topic(namesrv: str, topic: str) -> None:
    """Create the topic that the test reads: a consumer looks for a missing topic only every 30 seconds."""
    command = [sys.executable, "-m", "mqproof", "admin", "updateTopic", "-n", namesrv]
    subprocess.run([*command, "-c", "DefaultCluster", "-t", topic], check=True, capture_output=True)
