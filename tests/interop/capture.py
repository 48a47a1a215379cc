"""Capture the golden bytes again: `python -m tests.interop.capture`, with Maven and a JDK 17.

The broker, name server and clients of each release communicate through taps. The first frame of every kind is
kept, and then the first bytes of the broker's files.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.artifacts import releases
from mqproof.conformance.adapters.apache.java_clients import java_client, mqadmin
from mqproof.conformance.adapters.apache.servers import ApacheServer, ApacheServerError, running
from mqproof.conformance.adapters.apache.single_request import send_request
from mqproof.conformance.adapters.apache.tap import Passed, Tap
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ConsumerIds
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Serialization, new_request
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.files.index_file import HEADER_BYTES, Header, IndexShape

GOLDEN = Path(__file__).with_name("golden")
TOPIC = "Golden"
BINARY_HEADERS = ("-Drocketmq.serialize.type=ROCKETMQ",)
SEND_AS_OF_OLD = ("-Dorg.apache.rocketmq.client.sendSmartMsg=false",)
"""Header fields with their whole names."""

GROUP = "GoldenAdmin"
ADMINISTRATION = (
    "updateTopic -b {b} -t Made -r 4 -w 4",
    "updateTopicPerm -b {b} -t Made -p 4",
    "updateSubGroup -b {b} -g Made -r 3",
    "topicRoute -t Made",
    "topicList",
    "topicList -c",
    "topicStatus -t Golden",
    "clusterList",
    "brokerStatus -b {b}",
    "getBrokerConfig -b {b}",
    "updateBrokerConfig -b {b} -k maxMessageSize -v 4194305",
    "queryMsgById -i {id}{t}",
    "queryMsgById -i {id}{t} -g GoldenAdmin -d {client}",
    "queryMsgByKey -t Golden -k key-3",
    "consumerProgress -g GoldenAdmin -s true",
    "consumerConnection -g GoldenAdmin",
    "producerConnection -g driver_producer -t Golden",
    "consumerStatus -g GoldenAdmin",
    "resetOffsetByTime -g GoldenAdmin -t Golden -s 0",
    "cloneGroupOffset -s GoldenAdmin -d GoldenClone -t Golden",
    "printMsg -t Golden",
    "cleanExpiredCQ -b {b}",
    "wipeWritePerm -b apache-a",
    "addWritePerm -b apache-a",
    "updateKvConfig -s N -k K -v V",
    "deleteKvConfig -s N -k K",
    "getNamesrvConfig",
    "updateNamesrvConfig -k orderMessageEnable -v true",
    "deleteSubGroup -b {b} -g Made -r true",
    "deleteTopic -c DefaultCluster -t Made",
)

_LINE_BYTES = 48
_LOG_BYTES = 1 << 16


def main() -> None:
    for release in releases():
        folder = GOLDEN / release
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch:
            capture(release, Path(scratch), folder)
        with tempfile.TemporaryDirectory() as scratch:
            administer(release, Path(scratch), folder)
        print(f"{release}: {len(list(folder.iterdir()))} files", file=sys.stderr)


def capture(release: str, scratch: Path, folder: Path) -> None:
    names = servers.name_server(release, scratch)
    with running(names), Tap(names.address) as registrations:
        broker = servers.broker(release, scratch, registrations.address)
        with running(broker):
            talk(release, scratch, folder, names.address, broker.address)
            broker.stop()
            keep_frames(folder, registrations.passed)
            keep_store(folder, broker)
        packed = servers.broker(
            release, scratch, registrations.address, name="packed", properties={"compressedRegister": "true"}
        )
        registrations.passed.clear()
        # 5.x compresses the body without marking it. Its own name server refuses that, so it never registers.
        with suppress(ApacheServerError), running(packed):
            packed.stop()
        keep_frames(folder, registrations.passed, suffix="-compressed", codes=[RequestCode.REGISTER_BROKER])


def talk(release: str, scratch: Path, folder: Path, names: Address, broker: Address) -> None:
    """Let Apache's clients send and consume, once with each kind of header."""
    for jvm in ((), BINARY_HEADERS):
        with (
            Tap(broker) as at_broker,
            Tap(names, {str(broker).encode(): str(at_broker.address).encode()}) as at_names,
        ):
            group = f"Golden{len(jvm)}"
            with java_client(release, scratch, at_names.address, jvm=jvm) as client:
                for mode in ("sync", "oneway", "batch", "delay-1"):
                    client.send(TOPIC, 2, mode=mode)
                for mode in ("concurrent", "orderly", "lite"):
                    client.subscribe(mode, TOPIC, f"{group}_{mode}", mode=mode)
                    client.wait_for(4, mode)
                time.sleep(11)  # consumers commit for the first time 10 s after their start
            keep_frames(folder, [*at_names.passed, *at_broker.passed])


def administer(release: str, scratch: Path, folder: Path) -> None:
    """Run mqadmin on a cluster with a producer and a consumer of older kinds; only frames are kept."""
    names = servers.name_server(release, scratch)
    broker = servers.broker(release, scratch, names.address)
    with running(names, broker), Tap(broker.address) as to_broker, Tap(broker.address) as of_client:
        at = {
            tap: {str(broker.address).encode(): str(tap.address).encode()} for tap in (to_broker, of_client)
        }
        with (
            Tap(names.address, at[to_broker]) as to_names,
            Tap(names.address, at[of_client]) as names_of_client,
            java_client(release, scratch, names_of_client.address, jvm=SEND_AS_OF_OLD) as client,
        ):
            client.send(TOPIC, 4)
            sent = client.send(TOPIC, 1, tag="fail")[0]  # a message that a consumer sends back
            client.pull(TOPIC, "GoldenPull")
            client.subscribe("admin", TOPIC, GROUP)
            client.wait_for(5, "admin")
            facts = {
                "b": str(to_broker.address),
                "id": sent["offsetMsgId"],
                "client": client_id(broker.address, GROUP),
                "t": "" if release.startswith("4.") else f" -t {TOPIC}",
            }
            for command in ADMINISTRATION:
                mqadmin(release, scratch, to_names.address, *command.format(**facts).split())
            for tap in (to_names, to_broker, of_client):
                # Configurations contain file names of the machine that captures them.
                public = (each for each in tap.passed if str(scratch).encode() not in each.frame)
                keep_frames(folder, public)


def client_id(broker: Address, group: str) -> str:
    """Return the only member of the group."""
    answer = send_request(
        broker, new_request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group}), 10.0
    )
    assert answer is not None
    (found,) = java_json.read(ConsumerIds, answer.body).consumer_id_list
    return found


def keep_frames(
    folder: Path, passed: Iterable[Passed], *, suffix: str = "", codes: Iterable[int] = ()
) -> None:
    """Keep the first request and the first good response of each request code, by kind of header."""
    asked: dict[tuple[int, bool], int] = {}
    """Request code by the asker's number and whether a server asked."""
    for each in passed:
        command = each.command
        if command.is_response:
            code, direction = asked.pop((command.opaque, not each.from_server), -1), "response"
        else:
            code, direction = command.code, "oneway" if command.is_oneway else "request"
            if command.language == "JAVA":  # our own requests are not recorded
                asked[command.opaque, each.from_server] = code
        is_refusal = command.is_response and command.code != ResponseCode.SUCCESS
        if command.language != "JAVA" or is_refusal or code < 0 or (codes and code not in codes):
            continue
        kind = "json" if command.serialization is Serialization.JSON else "binary"
        path = folder / f"{kind}-{code}-{direction}{suffix}.hex"
        if not path.exists():
            write_hex(path, each.frame)


def keep_store(folder: Path, broker: ApacheServer) -> None:
    """Keep the broker's files, without the zeros at the end of each."""
    store = broker.store
    (log,) = sorted((store / "commitlog").iterdir())
    write_hex(folder / "commitlog.hex", _front(log, _LOG_BYTES))
    for queue in sorted((store / "consumequeue" / TOPIC).iterdir()):
        (segment,) = queue.iterdir()
        write_hex(folder / f"consumequeue-{queue.name}.hex", _front(segment, _LOG_BYTES))
    (index,) = sorted((store / "index").iterdir())
    header = _front(index, HEADER_BYTES)
    write_hex(folder / "index-header.hex", header)
    shape = IndexShape()
    entries = Header.decode(header).entry_next * (shape.entry_at(1) - shape.entry_at(0))
    write_hex(folder / "index-entries.hex", _front(index, entries, shape.entry_at(0)))
    write_hex(folder / "checkpoint.hex", _front(store / "checkpoint", 4096))
    for name in ("topics.json", "consumerOffset.json", "delayOffset.json", "subscriptionGroup.json"):
        shutil.copyfile(store / "config" / name, folder / name)


def write_hex(path: Path, data: bytes) -> None:
    lines = (data[at : at + _LINE_BYTES].hex() for at in range(0, len(data), _LINE_BYTES))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def _front(path: Path, size: int, at: int = 0) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(size).rstrip(b"\0")


if __name__ == "__main__":
    main()
