"""Damage and full disks that lost or altered messages without a word, repeated on processes over loopback."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mqproof.conformance.hosts.processes import Cluster, ClusterError
from mqproof.impl.client.blocking import BlockingClient
from tests.impl.reproduction import bodies, figure, log_of, send, site, start, until

DEEP = pytest.mark.deep("processes on a damaged or a full disk; simulated disks are tested in every run")
MIB = 1 << 20

pytestmark = [DEEP, pytest.mark.timeout(600)]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Cluster]:
    with site(tmp_path) as processes:
        yield processes


def restarted(made: Cluster, damage: Callable[[Path], None], count: int) -> list[bytes]:
    """Store messages, stop the broker, damage its store, start it again, and read everything."""
    start(made)
    with BlockingClient(made.name_server) as client:
        expected = [b"message %03d" % number for number in range(count)]
        assert {send(client, body) for body in expected} == {"SEND_OK"}
        made.stop("broker")
        damage(made.folder / "store")
        made.start_broker()
        return bodies(client, count)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_a_flipped_bit_in_a_consume_queue_is_repaired(made: Cluster) -> None:
    """Before: 0 of 60 messages delivered, and nothing logged."""
    found = restarted(
        made, lambda store: flip(store / "consumequeue" / "T" / "0" / f"{0:020}", 7), 60
    )  # of the commit offset of the first entry
    figure("messages of 60 delivered", len(found))
    figure("log", log_of(made).strip().splitlines()[-1])
    assert found == [b"message %03d" % number for number in range(60)]
    assert "damaged queue entry" in log_of(made)


@pytest.mark.parametrize("has_backup", [True, False])
def test_an_empty_table_of_topics_is_rebuilt_or_refused_by_name(made: Cluster, has_backup: bool) -> None:
    """Before: 600 messages unreachable without a word."""

    def damage(store: Path) -> None:
        (store / "config" / "topics.json").write_bytes(b"")
        if not has_backup:
            (store / "config" / "topics.json.bak").write_bytes(b"")

    found: list[bytes] = []
    with suppress(ClusterError):
        found = restarted(made, damage, 600)
    figure("messages of 600 delivered", len(found))
    figure("log", log_of(made).strip().splitlines()[-1])
    assert "topics.json" in log_of(made)
    assert len(found) == 600 or not made.running("broker")


def test_a_flipped_bit_in_a_body_is_not_delivered(made: Cluster) -> None:
    """Before: an altered body is served."""

    def damage(store: Path) -> None:
        log = store / "commitlog" / f"{0:020}"
        with log.open("rb") as file:
            flip(log, file.read(1 << 16).index(b"message 005"))

    found = restarted(made, damage, 60)
    figure("messages of 60 delivered", len(found))
    figure("log", log_of(made).strip().splitlines()[-1])
    assert found == [b"message %03d" % number for number in range(60) if number != 5]
    assert "damaged record" in log_of(made)


# A full disk: the broker's store is a file system of 64 MiB, in a mount namespace of its own.


@pytest.fixture
def disk(made: Cluster) -> Iterator[Path]:
    """Let the broker store on a small disk; return its folder, as this process sees it."""
    folder = made.folder / "store"
    folder.mkdir()
    mounted = f'mount -t tmpfs -o size=64m tmpfs "{folder}" && echo mounted && read _'
    try:
        holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mounted], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except OSError as error:
        pytest.skip(f"not tested: no mount namespace: {error}")
    with holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"mounted\n":
            pytest.skip("not tested: no file system can be mounted here")
        made.launchers["broker"] = ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--")
        yield Path(f"/proc/{holder.pid}/root{folder}")
        made.stop("broker")
        holder.kill()


def fill(disk: Path, percent: float) -> None:
    """Fill the disk up to that share with a file that is not the broker's."""
    space = os.statvfs(disk)
    used = space.f_blocks - space.f_bfree
    with (disk / "ballast").open("wb") as file, suppress(OSError):
        for _ in range(int(space.f_blocks * percent / 100) - used):
            file.write(bytes(space.f_frsize))


def lines_about_the_disk(made: Cluster) -> list[str]:
    return [line for line in log_of(made).splitlines() if "impl.store" in line and " disk " in line]


def test_a_disk_that_fills_up_is_logged_and_needs_no_restart(made: Cluster, disk: Path) -> None:
    """Before: the sender alone sees it, and nothing is logged."""
    start(made, mappedFileSizeCommitLog=MIB, cleanResourceInterval=100)
    with BlockingClient(made.name_server) as client:
        assert send(client, b"before") == "SEND_OK"
        fill(disk, 95)
        until(lambda: send(client, b"during") != "SEND_OK", "messages are still accepted")
        status = send(client, b"during")
        (disk / "ballast").unlink()
        waited = until(lambda: send(client, b"after") == "SEND_OK", "messages are still refused")
        found = bodies(client, 1000)
    figure("a send to a full disk", status)
    figure("seconds until a send is stored after space was freed", f"{waited:.2f}")
    figure("log", "\n    ".join(["", *lines_about_the_disk(made)]))
    assert (found[0], found[-1]) == (b"before", b"after")
    full, free = lines_about_the_disk(made)
    assert "messages are refused until space is free" in full
    assert "messages are accepted again, no restart is needed" in free


def test_a_disk_without_space_is_logged_and_the_log_says_that_a_restart_is_needed(
    made: Cluster, disk: Path
) -> None:
    """Before: the sender alone sees it, and nothing is logged."""
    start(made, mappedFileSizeCommitLog=MIB, cleanResourceInterval=3_600_000)
    stored: list[bytes] = []
    with BlockingClient(made.name_server) as client:
        assert send(client, b"before") == "SEND_OK"
        stored.append(b"before")
        fill(disk, 100)
        while len(stored) < 1000:
            body = b"%04d" % len(stored) * 4096
            if (status := send(client, body)) != "SEND_OK":
                break
            stored.append(body)
        figure("a send without space", status)
        (disk / "ballast").unlink()
        assert send(client, b"freed") != "SEND_OK"
        assert bodies(client, len(stored)) == stored
        made.stop("broker")
        made.start_broker()
        until(lambda: send(client, b"restarted") == "SEND_OK", "the restarted broker stores nothing")
        found = bodies(client, len(stored) + 10)
    figure("messages stored before, and found after the restart", (len(stored), len(found) - 1))
    figure("log", "\n    ".join(["", *lines_about_the_disk(made)]))
    assert found[: len(stored)] == stored
    assert found[-1] == b"restarted"
    assert any("until it is restarted: free space on the disk" in line for line in lines_about_the_disk(made))
