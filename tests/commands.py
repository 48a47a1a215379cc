"""Runs a command of mqproof in this process.

The imports of a new process cost more than what most commands do. A test of what only a process has, such as
its streams and signals, starts one.
"""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from mqproof.cli import main


def mqproof(*arguments: object) -> CompletedProcess[str]:
    """Run a command with these arguments; return its exit code and what it printed."""
    typed = ["mqproof", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with patch.object(sys, "argv", typed), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    printed = (stream.buffer.getvalue().decode() for stream in (out, err))
    return CompletedProcess(typed, code, *printed)
