"""Apache's own Java clients, driven by `Driver.java`, and its mqadmin."""

import os
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Final

from mqproof.conformance.adapters.apache.artifacts import cache_folder, class_path, java, program, releases
from mqproof.conformance.adapters.apache.servers import MODULE_FLAGS, SMALL_JVM, home
from mqproof.conformance.adapters.clients.driver_client import DriverClient, DriverError, driven
from mqproof.impl.runtime.network import Address

_SOURCE: Final = Path(__file__).with_name("Driver.java")
_ADMIN: Final = "org.apache.rocketmq.tools.command.MQAdminStartup"
_SECONDS_MAX: Final = 60.0
_COMPILE_SECONDS_MAX: Final = 120.0


@contextmanager
def java_client(
    release: str,
    folder: Path,
    name_server: Address | str,
    *,
    jvm: tuple[str, ...] = (),
    classes: str = "",
    traces: bool = False,
    name: str = "java-client",
) -> Iterator[DriverClient]:
    """Start a process with Apache's clients of that release; it is ended after the block.

    `classes` is the class path of the release, if it is not that of its servers.

    Raises:
        ApacheMissingError, DriverError.
    """
    classes = classes or class_path(release)
    flags = (*SMALL_JVM, *_client_flags(folder), *jvm)
    command = [java(), *flags, "-cp", f"{compiled(release, _SOURCE, classes)}:{classes}", "Driver"]
    arguments = [str(name_server), *(["trace"] if traces else [])]
    with driven([*command, *arguments], folder, folder / f"{name}.log") as client:
        yield client


def mqadmin(
    release: str, folder: Path, name_server: Address, *arguments: str, jvm: tuple[str, ...] = ()
) -> str:
    """Return the output of mqadmin. Raises ApacheMissingError, and DriverError when it takes too long."""
    with tempfile.TemporaryFile() as output:
        process = mqadmin_process(release, folder, name_server, *arguments, output=output, jvm=jvm)
        try:
            process.wait(_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise DriverError(f"mqadmin {' '.join(arguments)} did not finish") from None
        finally:
            process.kill()
            process.wait(_SECONDS_MAX)
        output.seek(0)
        return output.read().decode(errors="replace")


def query_trace(folder: Path, name_server: str, message_id: str) -> str:
    """Return what mqadmin of the newest release shows of a message's trace. Raises as `mqadmin`."""
    return mqadmin(releases()[-1], folder, Address.parse(name_server), "queryMsgTraceById", "-i", message_id)


def mqadmin_process(
    release: str,
    folder: Path,
    name_server: Address,
    *arguments: str,
    output: IO[bytes],
    jvm: tuple[str, ...] = (),
) -> subprocess.Popen[bytes]:
    """Start mqadmin, which writes to `output`. The caller ends it. Raises ApacheMissingError.

    Without arguments, it lists its commands.
    """
    flags = (*SMALL_JVM, *_client_flags(folder), *MODULE_FLAGS, *jvm)
    where = ("-n", str(name_server)) if arguments else ()
    command = [java(), *flags, "-cp", class_path(release), _ADMIN, *arguments, *where]
    environment = {**os.environ, "ROCKETMQ_HOME": str(home(folder))}
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=environment
    )


def _client_flags(folder: Path) -> tuple[str, ...]:
    # Logs and broadcast offsets are written below the user's home; here it is the test's folder.
    return (
        f"-Duser.home={folder}",
        "-Drocketmq.client.logLevel=WARN",
        f"-Drmq.logback.configurationFile={home(folder)}/conf/5.xml",
    )


@cache
def compiled(release: str, program_source: Path, classes: str = "") -> Path:
    """Return the folder with a program's classes, in the cache; compile them if necessary.

    `classes` is as in `java_client`.
    """
    source = program_source.read_bytes()
    folder = cache_folder() / f"driver-{release}-{zlib.crc32(source):08x}"
    if not folder.is_dir():
        compiler = program("javac", "install a JDK 17, a JRE is not enough")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".driver-") as scratch:
            command = [
                compiler,
                "-nowarn",
                "-proc:none",
                "-cp",
                classes or class_path(release),
                "-d",
                scratch,
                str(program_source),
            ]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_COMPILE_SECONDS_MAX, check=False
            )
            if done.returncode != 0:
                raise DriverError(
                    f"{program_source.name} cannot be compiled against {release}: {done.stderr}"
                )
            if not folder.is_dir():
                Path(scratch).rename(folder)
                Path(scratch).mkdir()  # for the context manager to remove
    return folder
