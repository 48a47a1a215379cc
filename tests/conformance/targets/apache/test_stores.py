"""One store directory in turns with Apache's broker and ours: each finds all that the other stored.

Method: Apache, ours, Apache, ours; each sends messages with a key of its turn and one that is delayed, and
ends cleanly or by SIGKILL. Before each turn, and at the end, the directory is verified.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.targets.apache import servers
from conformance.targets.apache.artifacts import ApacheMissingError, releases
from conformance.targets.apache.servers import running
from impl.runtime.network import Address

MESSAGES = 40
TURNS = 4
DELAY_LEVEL = 3  # 10 s: most of them come due in the next turn
SECONDS_MAX = 60.0


def mqproof(*arguments: object) -> str:
    """What the command prints; it must succeed."""
    command = [sys.executable, "-m", "mqproof", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def ours(store: Path, names: Address, *, clean: bool) -> Iterator[None]:
    """Our broker on the store, ended in one way or the other."""
    config = store.parent / "ours.properties"
    config.write_text(f"mappedFileSizeCommitLog={1 << 24}\nbrokerName=apache-a\n")
    command = [sys.executable, "-m", "mqproof", "broker", "--namesrv", str(names), "--port", "0"]
    command += ["--store", str(store), "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("ready")
            yield
        finally:
            process.send_signal(signal.SIGTERM if clean else signal.SIGKILL)
            process.wait(SECONDS_MAX)


@contextmanager
def theirs(broker: servers.ApacheServer, *, clean: bool) -> Iterator[None]:
    broker.start()
    try:
        yield
    finally:
        if clean:
            broker.stop()
        else:
            broker.kill()


def take_turn(turn: int, names: Address) -> None:
    """All that was stored so far is there and found; then this turn's messages."""
    route = ("--namesrv", names, "--topic", "T")
    if turn:
        consumed = mqproof("consume", *route, "--group", f"G{turn}", "--from-min").splitlines()
        for before in range(turn):
            assert len([line for line in consumed if line.endswith(f" turn{before}")]) == MESSAGES
            found = mqproof("admin", "queryMsgByKey", "-n", names, "-t", "T", "-k", f"key{before}")
            assert len([line for line in found.splitlines() if line.strip()]) >= MESSAGES
    send = ("send", *route, "--quiet")
    mqproof(*send, "--body", f"turn{turn}", "--keys", f"key{turn}", "--count", MESSAGES)
    mqproof(*send, "--body", f"late{turn}", "--delay-level", DELAY_LEVEL)
    time.sleep(2)  # released brokers dispatch behind the answer, and write some files now and then only


@pytest.mark.apache
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("release", releases())
def test_a_store_may_change_hands(release: str, clean: bool, tmp_path: Path) -> None:
    try:
        names = servers.name_server(release, tmp_path)
        broker = servers.broker(release, tmp_path, names.address)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    with running(names):
        for turn in range(TURNS):
            owner = (
                theirs(broker, clean=clean)
                if turn % 2 == 0
                else ours(broker.store, names.address, clean=clean)
            )
            with owner:
                take_turn(turn, names.address)
            mqproof("store", "verify", broker.store)
        with ours(broker.store, names.address, clean=True):
            time.sleep(11)
            consumed = mqproof(
                "consume", "--namesrv", names.address, "--topic", "T", "--group", "L", "--from-min"
            )
            for turn in range(TURNS):
                assert f" late{turn}\n" in consumed, "delayed in one turn, delivered in that or a later one"
        assert mqproof("store", "verify", broker.store).startswith("whole")
