"""Executes a user's control commands on one of our servers.

`control.py FOLDER start|stop|kill|freeze|thaw|isolate|rejoin [...]`. The folder contains the server's process
id, its store, and a line for each executed command. The arguments after `start` are the server's command
line. An isolated server neither receives nor sends anything, like a frozen one.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS_MAX = 60.0
_SIGNALS = {
    "freeze": signal.SIGSTOP,
    "isolate": signal.SIGSTOP,
    "thaw": signal.SIGCONT,
    "rejoin": signal.SIGCONT,
}


def gone(pid: int) -> bool:
    """Return whether the process has ended, even if its parent has not collected the exit code."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def main(folder: Path, what: str, *command: str) -> None:
    with (folder / "done").open("a") as done:
        done.write(f"{what}\n")
    pid_file = folder / "pid"
    if what == "start":
        with (folder / "broker.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        pid_file.write_text(str(process.pid))
        return
    pid = int(pid_file.read_text())
    if what in _SIGNALS:
        os.kill(pid, _SIGNALS[what])
        return
    os.kill(pid, signal.SIGKILL if what == "kill" else signal.SIGTERM)
    deadline = time.monotonic() + SECONDS_MAX
    while not gone(pid):
        if time.monotonic() > deadline:
            sys.exit(f"{pid} does not end")
        time.sleep(0.01)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
