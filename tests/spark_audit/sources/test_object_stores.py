"""Event logs on an object store: a small server of the S3 protocol has them."""

import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.object_stores import _relative, fetch, is_remote
from tests.spark_audit.conftest import LogBuilder, write_ndjson

Objects = dict[str, bytes]


class _Bucket(BaseHTTPRequestHandler):
    """Lists and returns the objects of a bucket; it checks no credentials."""

    objects: ClassVar[Objects] = {}

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        url = urllib.parse.urlsplit(self.path)
        _, _, key = urllib.parse.unquote(url.path).lstrip("/").partition("/")
        query = dict(urllib.parse.parse_qsl(url.query))
        if not key and "list-type" in query:
            return self._send(200, self._listing(query), with_body)
        if not key and not url.query:
            return self._send(200, b"", with_body)
        if key not in self.objects:
            return self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", with_body)
        content = self.objects[key]
        if wanted := self.headers.get("Range"):
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            content = content[int(begin) : int(end) + 1]
            return self._send(206, content, with_body)
        return self._send(200, content, with_body)

    def _listing(self, query: dict[str, str]) -> bytes:
        prefix = query.get("prefix", "")
        found = [(key, content) for key, content in sorted(self.objects.items()) if key.startswith(prefix)]
        rows = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(content)}</Size></Contents>" for key, content in found
        )
        return (
            f"<ListBucketResult><Name>logs</Name><Prefix>{prefix}</Prefix><IsTruncated>false</IsTruncated>"
            f"<KeyCount>{len(found)}</KeyCount>"
            f"{rows}</ListBucketResult>"
        ).encode()

    def _send(self, status: int, content: bytes, with_body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", "Thu, 26 Nov 2026 10:00:00 GMT")
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Objects]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(_Bucket, "objects", {})
    with ThreadingHTTPServer(("127.0.0.1", 0), _Bucket) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            at = f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
            yield at, _Bucket.objects
        finally:
            server.shutdown()
            thread.join()


def _log() -> bytes:
    builder = LogBuilder()
    for offset in range(3):
        builder.stored(f"m_{offset}", offset)
    builder.deliver("m_0", 0).deliver("m_2", 2)
    return write_ndjson(builder.rows)


def test_logs_of_a_bucket_are_judged(bucket: tuple[str, Objects]) -> None:
    at, objects = bucket
    lines = _log().splitlines(keepends=True)
    objects["day/1/a.ndjson"], objects["day/2/b.ndjson"] = b"".join(lines[:4]), b"".join(lines[4:])
    objects["day/_tmp/c.ndjson"] = objects["day/readme.txt"] = b"no event"
    done = CliRunner().invoke(app, ["audit", "run", "--events", f"s3://logs/day?{at}", "--id", "DELIV-1"])
    assert done.exit_code == Exit.VIOLATED, done.output
    assert "lost-write" in done.output
    assert "m_1" in done.output
    assert "s3://logs/day: copied 2 files" in done.output
    assert "--events 's3://logs/day?" in done.output
    explained = CliRunner().invoke(
        app, ["audit", "explain", "m_0", "--events", f"s3a://logs/day/1/a.ndjson?{at}"]
    )
    assert explained.exit_code == Exit.HELD, explained.output


def test_what_cannot_be_read_is_one_line(bucket: tuple[str, Objects]) -> None:
    at, objects = bucket
    objects["day/readme.txt"] = b"no event"
    for path in ("day", "absent", "day/readme.txt"):
        done = CliRunner().invoke(app, ["audit", "run", "--events", f"s3://logs/{path}?{at}"])
        assert done.exit_code == Exit.USAGE, done.output
        (line,) = [line for line in done.stderr.splitlines() if "s3://" in line]
        assert f"s3://logs/{path}: " in line
        assert at not in line


def test_a_log_larger_than_the_disk_is_refused(
    bucket: tuple[str, Objects], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, objects = bucket
    objects["a.ndjson"] = b"x" * 100
    monkeypatch.setattr("mqproof.spark_audit.sources.object_stores.FREE_BYTES_MIN", 1 << 60)
    with pytest.raises(InputError, match="space for 0 MiB"):
        fetch(f"s3://logs/a.ndjson?{at}", tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_names_that_lead_out_of_the_folder_are_refused() -> None:
    with pytest.raises(InputError, match="leads out"):
        _relative("logs/day/../../etc/x.ndjson", "logs/day")
    assert str(_relative("logs/day/a.ndjson", "logs/day/a.ndjson")) == "a.ndjson"
    assert is_remote("s3://b/x")
    assert not is_remote("s3:/b")
    assert not is_remote("folder/s3")
