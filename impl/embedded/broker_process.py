"""A broker in a process of its own, which a test can kill and start again."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mqproof.impl.runtime.network import Address

_STOP_S: Final = 30.0


class ProcessError(RuntimeError):
    """`mqproof serve` did not start. The message has what it printed."""


class BrokerProcess:
    """`mqproof serve` on free ports of the loopback interface, with its store in a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        """Create a process that starts when the `with` block is entered.

        `folder` gets the store and the log; `options` are more options of `mqproof serve`.
        """
        self._folder = folder
        self._options: Sequence[str] = options
        self._process: subprocess.Popen[str] | None = None
        self._ports = ("0", "0")
        self.name_server = ""
        """The address of the name server, as HOST:PORT; empty before the start."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def log(self) -> Path:
        """The file with what the process logged."""
        return self._folder / "serve.log"

    def start(self) -> None:
        """Start the process, on the same ports as before, and wait until it is ready.

        Raises:
            ProcessError: it ended without being ready.
        """
        namesrv_port, broker_port = self._ports
        command = [sys.executable, "-m", "mqproof", "serve", "--namesrv-port", namesrv_port]
        command += ["--broker-port", broker_port, "--store", str(self._folder / "store"), *self._options]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._process = process
        assert process.stdout is not None
        ready = dict(part.partition("=")[::2] for part in process.stdout.readline().split()[1:])
        if "namesrv" not in ready:
            self.kill()
            raise ProcessError(f"mqproof serve did not start: {self.log.read_text(errors='replace')[-500:]}")
        self.name_server = ready["namesrv"]
        addresses = (Address.parse(ready["namesrv"]), Address.parse(ready["broker"]))
        self._ports = (str(addresses[0].port), str(addresses[1].port))

    def kill(self) -> None:
        """Kill the process, as a crash does: nothing is written or answered any more."""
        self._end(kill=True)

    def restart(self) -> None:
        """Kill the process and start it again on its store."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """Stop the process in an orderly way. Nothing happens if it does not run."""
        self._end(kill=False)

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            if kill:
                process.kill()
            else:
                process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
