"""The ready file: addresses while the servers are ready, and no file before and after."""

import json
import os
from pathlib import Path

from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.ready_file import ReadyFile


def test_the_file_exists_while_the_servers_are_ready(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("of an earlier process")
    ready = ReadyFile(path)
    ready.prepare()
    assert not path.exists()
    ready.write({"namesrv": Address("127.0.0.1", 9876)})
    assert json.loads(path.read_text()) == {"pid": os.getpid(), "namesrv": "127.0.0.1:9876"}
    assert list(tmp_path.iterdir()) == [path]
    ready.remove()
    assert not path.exists()
    ready.remove()  # nothing to do
