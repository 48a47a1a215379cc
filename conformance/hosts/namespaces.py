"""Machines on a separate network, each in its own network namespace, with real processes.

Links can be cut. It needs Linux, root, and the commands ip, nsenter and unshare. Everything created here
disappears with its last process: nothing has a name outside, and the system's own network is not changed.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")

_NEW_NET: Final = 0x40000000  # CLONE_NEWNET
_SUBNET: Final = "10.77.0"
_UNUSED_ADDRESS: Final = "02:00:00:00:00:fe"
"""A link-layer address that no machine has."""
_ENDS_IN_S: Final = 10.0


def missing() -> str:
    """Return the reason why machines cannot be created here, in one line; "" if they can."""
    for command in ("ip", "nsenter", "unshare"):
        if shutil.which(command) is None:
            return f"there is no command {command}"
    made = subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"],
        capture_output=True,
        text=True,
        check=False,
    )
    return made.stderr.strip().replace("\n", " ") if made.returncode else ""


class Machines:
    """A set of machines on one network.

    `launcher` starts a process on a machine. Code in the block of `machines` reaches all of them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(names, start=1)}
        self._holders: dict[str, subprocess.Popen[bytes]] = {}

    def address(self, name: str) -> str:
        return f"{_SUBNET}.{self._numbers[name]}"

    def launcher(self, name: str) -> tuple[str, ...]:
        """Return the command prefix that runs a command on that machine.

        The command runs directly in the process.
        """
        return ("nsenter", f"--net=/proc/{self._holders[name].pid}/ns/net", "--")

    def cut(self, name: str) -> None:
        """Disconnect the machine: nothing reaches it or leaves it, and no peer is notified."""
        _run("ip", "link", "set", self._port(name), "down")

    def heal(self, name: str) -> None:
        _run("ip", "link", "set", self._port(name), "up")

    def part(self, one: str, other: str) -> None:
        """Cut the connection between these two machines only."""
        for here, there in ((one, other), (other, one)):
            self._neighbour(
                here, "replace", self.address(there), "lladdr", _UNUSED_ADDRESS, "nud", "permanent"
            )

    def join(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            self._neighbour(here, "delete", self.address(there))

    def _neighbour(self, name: str, *change: str) -> None:
        verb, address, *rest = change
        _run(*self.launcher(name), "ip", "neighbour", verb, address, *rest, "dev", "eth0")

    def _port(self, name: str) -> str:
        """Return the switch port of the machine's link."""
        return f"port{self._numbers[name]}"

    def make(self) -> None:
        """Create all machines on a switch in the namespace of the calling thread."""
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "switch", "type", "bridge")
        _run("ip", "address", "add", f"{_SUBNET}.254/24", "dev", "switch")
        _run("ip", "link", "set", "switch", "up")
        for name in self._numbers:
            self._make(name)

    def _make(self, name: str) -> None:
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=-1, stdout=-1)
        self._holders[name] = holder
        assert holder.stdout is not None, "a pipe"
        holder.stdout.read(1)  # now it has its own namespace
        port, peer = self._port(name), ("peer", "name", "eth0", "netns", str(holder.pid))
        _run("ip", "link", "add", port, "type", "veth", *peer)
        _run("ip", "link", "set", port, "master", "switch", "up")
        _run(*self.launcher(name), "ip", "address", "add", f"{self.address(name)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _run(*self.launcher(name), "ip", "link", "set", device, "up")

    def end(self) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.wait(_ENDS_IN_S)
            for pipe in (holder.stdin, holder.stdout):
                if pipe is not None:
                    pipe.close()


def on_a_network(work: Callable[[], T]) -> T:
    """Run the work in a thread with a new, empty network, which its subprocesses share. Raises OSError."""

    def there() -> T:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEW_NET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(there).result()


@contextmanager
def machines(*names: str) -> Iterator[Machines]:
    """Create machines with these names on the calling thread's network."""
    made = Machines(names)
    try:
        made.make()
        yield made
    finally:
        made.end()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
