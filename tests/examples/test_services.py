"""The examples that need more than a broker: a web server, certificates, pytest or an adapter."""

import logging
import re
import runpy
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import trustme

from tests.examples.programs import EXAMPLES, environment, run
from tests.impl.command.test_cli import SERVE, server


@contextmanager
def web_service(namesrv: str, log: Path) -> Iterator[str]:
    """Run the service on a free port, and yield its URL."""
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "--app-dir",
        str(EXAMPLES),
        "--port",
        "0",
        "fastapi_service:app",
    ]
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=environment(namesrv), stdout=output, stderr=output) as process,
    ):
        try:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"running on (http://\S+)", log.read_text())):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield found[1]
        finally:
            process.terminate()
            process.wait(30)


def send_request(url: str, body: object = None) -> tuple[int, object]:
    """Send a request and return the status and the JSON body of the response."""
    data = None if body is None else msgspec.json.encode(body)
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, msgspec.json.decode(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, msgspec.json.decode(error.read())


def test_the_web_service_confirms_an_order_and_reports_a_stopped_broker(tmp_path: Path) -> None:
    with server(*SERVE, "--store", str(tmp_path / "store")) as (process, addresses):
        make = ("-m", "mqproof", "admin", "updateTopic", "-c", "DefaultCluster", "-t", "example_web_orders")
        run(*make, namesrv=addresses["namesrv"])
        with web_service(addresses["namesrv"], tmp_path / "log") as url:
            status, answer = send_request(f"{url}/orders", {"number": "7", "item": "tea"})
            assert (status, list(msgspec.convert(answer, dict[str, str]))) == (202, ["message_id"])
            deadline = time.monotonic() + 30
            while (shown := send_request(f"{url}/orders/7"))[0] == 404 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert shown == (200, {"number": "7", "item": "tea", "state": "confirmed"})
            assert send_request(f"{url}/orders/8") == (404, {"detail": "order 8 is not confirmed"})
            process.kill()
            process.wait(30)
            assert send_request(f"{url}/orders", {"number": "9", "item": "tea"})[0] in (503, 504)


@pytest.fixture
def secure(tmp_path: Path) -> Path:
    """Copy the example folder and add a certificate, with its authority in the same file."""
    folder = Path(shutil.copytree(EXAMPLES / "secure", tmp_path / "secure"))
    authority = trustme.CA()
    server_certificate = authority.issue_cert("127.0.0.1")
    server_certificate.private_key_pem.write_to_path(folder / "key.pem")
    server_certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    authority.cert_pem.write_to_path(folder / "cert.pem", append=True)
    return folder


def test_the_broker_accepts_the_account_only_with_the_right_signature_and_over_tls(
    secure: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(secure)
    setup = ("--tls", "tls.properties", "-c", "broker.conf", "--store", str(tmp_path / "store"))
    with server(*SERVE, *setup) as (_, addresses):
        lines = run("secure.py", folder=secure, namesrv=addresses["namesrv"]).splitlines()
    allowed, denied, consumed, _, wrong, _, plain = lines
    assert allowed.startswith("example_contracts: stored in example_contracts@broker-a:")
    assert "access key app-orders has no permission PUB for topic example_salaries" in denied
    assert consumed == "consumed 'signed'"
    assert "the signature is not that of access key app-orders" in wrong
    assert plain.startswith("example_contracts: refused, NO_ROUTE")


def test_the_test_of_the_example_application_passes_and_fails_with_a_bug(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXAMPLES / "pytest_app", tmp_path / "pytest_app"))
    assert "1 passed" in run("-m", "pytest", "-p", "no:cacheprovider", folder=folder)
    broken = folder / "orders.py"
    broken.write_text(broken.read_text().replace('"tea": 2', '"tea": 1'))
    assert "1 failed" in run("-m", "pytest", "-p", "no:cacheprovider", folder=folder, code=1)


def test_the_chaos_proxy_shows_a_bug_that_the_ordinary_tests_of_the_example_accept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "mqproof")  # faults cause warnings on purpose
    monkeypatch.syspath_prepend(EXAMPLES / "chaos_app")
    example = runpy.run_path(str(EXAMPLES / "chaos_app" / "test_payments.py"))
    for identity in (example["by_place"], example["by_number"]):
        example["test_every_order_is_charged_once"](identity)
        example["test_an_order_that_is_delivered_again_is_charged_once"](identity)
    under_chaos = example["test_every_order_is_charged_once_under_chaos"]
    under_chaos(example["by_number"])
    with pytest.raises(AssertionError) as error:
        under_chaos(example["by_place"])
    assert not str(error.value)  # the comparison of the charges, and neither UnlawfulError nor a time-out


CONFORM = ("-m", "mqproof", "conform")


@pytest.fixture
def _memory_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep temporary files in memory if /dev/shm exists, because SQLite waits for the disk at each commit."""
    if Path("/dev/shm").is_dir():
        monkeypatch.setenv("TMPDIR", "/dev/shm")


@pytest.mark.usefixtures("_memory_file_system")
def test_the_example_adapter_passes_check_adapter_and_its_store_conforms() -> None:
    folder, name = EXAMPLES / "adapter", "python:sqlite_broker:SqliteBroker"
    assert "13 held, 3 not tested" in run(*CONFORM, "check-adapter", name, folder=folder)
    shown = run(*CONFORM, "--target", name, "--suite", "flush", "--examples", "3", folder=folder)
    assert "10 held, 2 not tested" in shown


@pytest.mark.usefixtures("_memory_file_system")
def test_the_suite_finds_the_bug_of_the_broken_example_store() -> None:
    target = ("--target", "python:sqlite_broker:EarlyAck", "--suite", "flush", "--examples", "20")
    shown = run(*CONFORM, *target, "--id", "FLUSH-1", folder=EXAMPLES / "adapter", code=1)
    assert "Minimal script that violates FLUSH-1" in shown
