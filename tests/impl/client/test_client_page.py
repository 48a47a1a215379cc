"""Tests that the examples of docs/how-to/client.md run in order over real sockets."""

import asyncio
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import Refused, Sent
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.security.tls_file import load

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "client.md"


@contextmanager
def cluster(directory: Path, *, acl: bool = False, tls: str | None = None) -> Iterator[str]:
    """Run a name server and a broker in a thread. Yields the name server's address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    runtime = production(AsyncioNetwork(), load(tls) if tls else None)
    namesrv = NameServer(NameServerConfig(port=0), runtime)

    async def start() -> tuple[str, Broker]:
        address = await namesrv.start()
        config = BrokerConfig(
            store_directory=str(directory),
            port=0,
            name_servers=(address,),
            acl_enabled=acl,
            property_filter=True,
        )
        broker = Broker(config, runtime)
        await broker.start()
        return str(address), broker

    async def stop(broker: Broker) -> None:
        await broker.stop()
        await namesrv.stop()
        await loop.shutdown_default_executor()

    thread.start()
    try:
        address, broker = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
        yield address
        asyncio.run_coroutine_threadsafe(stop(broker), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def test_the_certificate_of_the_page_works_for_testing_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    page = PAGE.read_text(encoding="utf-8")
    (make,) = re.findall(r"```\n(openssl .*)\n```", page)
    (properties,) = re.findall(r"```properties\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    subprocess.run(make.split(), check=True, capture_output=True, timeout=120)
    Path("tls.properties").write_text(properties)
    with cluster(tmp_path / "store", tls="tls.properties") as namesrv:
        with BlockingClient(namesrv, tls="tls.properties") as client:
            assert isinstance(client.send(new_message("T", b"x")), Sent)
        with BlockingClient(namesrv) as plain:
            assert isinstance(plain.send(new_message("T", b"x")), Refused)


def test_the_examples_of_the_page_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 18
    printed = []
    with cluster(tmp_path / "store") as namesrv:
        names = {"NAMESRV": namesrv, "SECONDS": 1, "__name__": "page"}
        for example in examples:
            exec(compile(example, str(PAGE), "exec"), names)
            printed.append(capsys.readouterr().out)
    send, raising, many, ways, timed, transactional, asked, *read = printed
    push, orderly, filtered, poll, iterated, acknowledged, *others, blocking = read
    assert asked == "b'42'\n"
    assert "COMMIT" in transactional, transactional
    assert timed == "", "the recall succeeded"
    assert "stored at offset 0" in send
    copies, newest, settings, hooks = others
    assert sum(int(line.split()[0]) for line in copies.splitlines()) >= 100
    assert newest == ""
    assert settings.endswith("@billing\n")
    assert re.search(r"^SEND_MESSAGE_V2 127\.0\.0\.1:\d+ SUCCESS \d\.\d s$", hooks, re.MULTILINE)
    assert raising.startswith("stored at offset ")
    assert iterated.startswith("b'")
    assert acknowledged.startswith("b'")
    assert many == "100 stored\n"
    assert ways.count("'") == 4
    assert push.startswith("Orders drink one coffee ")
    in_order = [
        line.split()[2] for line in orderly.splitlines() if line.split()[2] in ("ordered", "paid", "shipped")
    ]
    assert in_order == ["ordered", "paid", "shipped"]
    assert [line.split()[2:4] for line in filtered.splitlines()] == [["a", "cake"]]
    assert sum(int(line.split()[0]) for line in poll.splitlines()) >= 107
    assert "from a thread" not in blocking
    assert blocking.count("SEND_OK") == 2
    assert "[b'one coffee']" in blocking
