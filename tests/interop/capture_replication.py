"""Capture the golden bytes of replication again: `python -m tests.interop.capture_replication`.

The slave of each release follows its own master through a tap, which records both directions: from an empty
slave on, through a few messages and a heartbeat.
"""

import sys
import tempfile
import time
from pathlib import Path

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.artifacts import releases
from mqproof.conformance.adapters.apache.byte_tap import ByteTap
from mqproof.conformance.adapters.apache.servers import running
from mqproof.conformance.adapters.apache.tap import Tap
from mqproof.conformance.hosts.processes import cluster
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.runtime.network import Address
from tests.interop.capture import write_hex
from tests.interop.test_replication import TOPIC, apaches, ha_of, send, send_until_ok

GOLDEN = Path(__file__).parents[1] / "impl" / "replication" / "golden"
_BEATS_S = 12.0
"""Long enough for a heartbeat and a report: each is sent after 5 s of silence."""


def main() -> None:
    for release in releases():
        with tempfile.TemporaryDirectory() as scratch:
            slave, master = capture(release, Path(scratch))
        GOLDEN.mkdir(exist_ok=True)
        write_hex(GOLDEN / f"{release}-slave.hex", slave)
        write_hex(GOLDEN / f"{release}-master.hex", master)
        print(f"{release}: {len(slave)} and {len(master)} bytes", file=sys.stderr)


def capture(release: str, folder: Path) -> tuple[bytes, bytes]:
    """Return the bytes that a slave and its master send on their connection."""
    with cluster(folder, "ASYNC_FLUSH") as ours:
        ours.start_name_server()
        names = Address.parse(ours.name_server)
        master = apaches(release, ours, "SYNC_MASTER", inSyncReplicas="2")
        ha = ha_of(master, release)
        with (
            running(master),
            ByteTap(ha) as tap,
            Tap(names, {str(ha).encode(): str(tap.address).encode()}) as tapped,
        ):
            slave = servers.broker(
                release,
                folder,
                tapped.address,
                name="slave",
                properties={"brokerRole": "SLAVE", "brokerId": "1", "brokerName": "pair"},
            )
            with running(slave), BlockingClient(ours.name_server) as client:
                send_until_ok(client, "first")
                send(client, 3, "golden")
                client.send(new_message(TOPIC, b"large" * 10_000))
                time.sleep(_BEATS_S)
                said, answered = tap.connections[-1]
                return bytes(said), bytes(answered)


if __name__ == "__main__":
    main()
