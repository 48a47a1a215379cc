"""The disk: the file system operations that the store uses, and their implementation on the real file system.

The guarantees are those of POSIX and no more. A write is visible at once and survives the death of the
process; it survives the death of the machine only after `File.sync` has returned. A name (created, replaced,
removed) is durable only after `Disk.sync_directory` of its directory has returned. Paths are strings with
"/"; parent directories are created when needed.
"""

import contextlib
import errno
import fcntl
import os
import stat
import threading
from pathlib import Path
from typing import Final, NamedTuple, Protocol

_CHUNK_BYTES: Final = 1 << 20

ONE_AFTER_ANOTHER: Final = threading.Lock()
"""Held while a file is replaced by a newer version. The call of a cancelled task goes on in its thread."""
SECRET_MODE: Final = 0o600
"""The permissions of a new file with secrets: only its owner can read it."""


class Space(NamedTuple):
    """The space of the file system that holds a directory."""

    total_bytes: int
    free_bytes: int
    """The bytes available to this process."""

    @property
    def used_percent(self) -> float:
        return 100 * (1 - self.free_bytes / self.total_bytes) if self.total_bytes else 0.0


class LockedError(Exception):
    """The lock is held already. The message names the lock file."""


class File(Protocol):
    """An open file of fixed size, read and written by position. Errors of the device are OSError."""

    @property
    def path(self) -> str: ...

    def size(self) -> int:
        """Return the current size in bytes."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Read at most `size` bytes from `offset`; fewer only where the file ends."""
        ...

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `offset`, into the page cache."""
        ...

    def zero_tail(self, offset: int) -> int:
        """Make every byte from `offset` on zero; the size stays.

        Zeros that were written before are written again, because an earlier sync of them may have failed.

        Returns how many bytes there were from `offset` up to and including the last one that was not zero.
        """
        ...

    def sync(self) -> None:
        """Make the written bytes durable (fdatasync).

        After an OSError, bytes written since the last successful sync must not be considered durable, not
        even after a later sync succeeds.

        On a closed file this does nothing, because a file may be removed while another thread is about to
        sync it.
        """
        ...

    def close(self) -> None:
        """Close the file. This may be called again, and from another thread."""
        ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """A file system. Errors are OSError and its subclasses (FileNotFoundError, FileExistsError)."""

    def open(self, path: str) -> File: ...

    def create(self, path: str, size: int, mode: int | None = None) -> File:
        """Create a sparse file of `size` zero bytes. Raises FileExistsError when the name exists.

        Its permissions are exactly `mode`, or 0644 less the umask.
        """
        ...

    def mode(self, path: str) -> int | None:
        """Return the permission bits of a file; None when it does not exist."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def names(self, directory: str) -> list[str]:
        """Return the names in the directory, sorted; empty when the directory does not exist."""
        ...

    def remove(self, path: str) -> None: ...

    def replace(self, source: str, target: str) -> None:
        """Rename a file within one directory atomically, replacing an existing target."""
        ...

    def sync_directory(self, directory: str) -> None:
        """Make the names created, replaced and removed in the directory durable, and the directory itself."""
        ...

    def space(self, directory: str) -> Space:
        """Return the space of the file system that holds the directory."""
        ...

    def lock(self, path: str) -> Lock:
        """Take the lock file for this process, until it is released or the process ends.

        Raises:
            LockedError: it is held by another process or by this one. Nothing was changed.
        """
        ...


def is_out_of_space(error: OSError) -> bool:
    """Return whether an error says that the disk, or the quota of this user, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def write_durably(disk: Disk, path: str, data: bytes, new_mode: int | None = None) -> None:
    """Replace the file's whole content; after any crash the file has either the old content or the new one.

    The steps are a temporary file, its fsync, a rename, and an fsync of the directory. Each step depends on
    the one before it. A file that exists keeps its permissions. A new one gets `new_mode`, as in
    `Disk.create`; use SECRET_MODE for a file with secrets.
    """
    temporary = f"{path}.tmp"
    if disk.exists(temporary):
        disk.remove(temporary)
    old_mode = disk.mode(path)
    file = disk.create(temporary, len(data), new_mode if old_mode is None else old_mode)
    try:
        file.write(0, data)
        file.sync()
    finally:
        file.close()
    disk.replace(temporary, path)
    disk.sync_directory(parent(path))


def read_whole(disk: Disk, path: str) -> bytes:
    """Return the file's whole content. Raises FileNotFoundError when the file does not exist."""
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def parent(path: str) -> str:
    """Return the directory part: "a/b" for "a/b/c", "." for a bare name."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


class RealFile:
    """A file descriptor, used with pread and pwrite so that threads can share one file."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._closing = threading.Lock()
        self._is_closed = False

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, offset)

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        written = os.pwrite(self._descriptor, data, offset)
        while written < len(data):  # a signal or a nearly full disk may cut a write short
            rest = memoryview(data)[written:]
            written += os.pwrite(self._descriptor, rest, offset + written)

    def zero_tail(self, offset: int) -> int:
        end = position = offset
        # Visit only the data extents: a segment can be a gigabyte that is mostly unwritten.
        while (start := self._next_data(position)) is not None:
            position = os.lseek(self._descriptor, start, os.SEEK_HOLE)
            for chunk in range(start, position, _CHUNK_BYTES):
                data = self.read(chunk, min(_CHUNK_BYTES, position - chunk))
                self.write(chunk, bytes(len(data)))
                if used := len(data.rstrip(b"\0")):
                    end = chunk + used
        return end - offset

    def sync(self) -> None:
        with self._closing:
            if not self._is_closed:
                os.fdatasync(self._descriptor)

    def close(self) -> None:
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._descriptor)

    def _next_data(self, position: int) -> int | None:
        try:
            return os.lseek(self._descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole up to the end
                return None
            raise


_locks_of_this_process: set[tuple[int, int]] = set()  # POSIX locks do not exclude their own process


class RealLock:
    """A POSIX lock on the first byte of a file, compatible with RocketMQ's lock."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._identity = _identity(os.fstat(descriptor))
        _locks_of_this_process.add(self._identity)

    def release(self) -> None:
        _locks_of_this_process.discard(self._identity)
        os.close(self._descriptor)


class RealDisk:
    """The file system of the machine."""

    def __init__(self) -> None:
        self._durable_directories: set[str] = set()  # directories whose own names this process has synced

    def open(self, path: str) -> RealFile:
        return RealFile(path, os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def create(self, path: str, size: int, mode: int | None = None) -> RealFile:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        # Never wider than `mode`, not even for a moment: another process could open the file meanwhile.
        at_first = 0o644 if mode is None else mode & SECRET_MODE
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, at_first)
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.ftruncate(descriptor, size)
        except OSError:
            os.close(descriptor)
            raise
        return RealFile(path, descriptor)

    def mode(self, path: str) -> int | None:
        try:
            return stat.S_IMODE(Path(path).stat().st_mode)
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def is_directory(self, path: str) -> bool:
        return Path(path).is_dir()

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(entry.name for entry in Path(directory).iterdir())
        except FileNotFoundError:
            return []

    def remove(self, path: str) -> None:
        Path(path).unlink()

    def replace(self, source: str, target: str) -> None:
        Path(source).replace(target)

    def sync_directory(self, directory: str) -> None:
        _fsync_directory(directory)
        # Sync its own name too, and so on upwards: this process, or a killed one before it, may have created
        # them.
        while directory not in self._durable_directories and parent(directory) != directory:
            self._durable_directories.add(directory)
            directory = parent(directory)
            with contextlib.suppress(PermissionError):  # then this process did not create it
                _fsync_directory(directory)

    def space(self, directory: str) -> Space:
        status = os.statvfs(directory)
        return Space(status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize)

    def lock(self, path: str) -> RealLock:
        with contextlib.suppress(FileNotFoundError):
            # Checked before opening: closing any descriptor of the file would release the lock that this
            # process holds on it.
            if _identity(Path(path).stat()) in _locks_of_this_process:
                raise LockedError(f"{path}: locked by this process")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise LockedError(f"{path}: locked by another process") from None
            raise
        if os.fstat(descriptor).st_size == 0:
            os.pwrite(descriptor, b"lock", 0)
        return RealLock(descriptor)


class ReadOnlyDisk(RealDisk):
    """A disk that cannot change anything, for files that belong to another process."""

    def open(self, path: str) -> RealFile:
        return RealFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def create(self, path: str, size: int, mode: int | None = None) -> RealFile:  # noqa: ARG002
        raise _read_only(path)

    def remove(self, path: str) -> None:
        raise _read_only(path)

    def replace(self, source: str, target: str) -> None:  # noqa: ARG002
        raise _read_only(target)

    def lock(self, path: str) -> RealLock:
        raise _read_only(path)

    def is_locked(self, path: str) -> bool:
        """Return whether another process holds that lock now."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return True
            raise
        finally:
            os.close(descriptor)
        return False


def _read_only(path: str) -> OSError:
    return OSError(errno.EROFS, os.strerror(errno.EROFS), path)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return (status.st_dev, status.st_ino)


def _fsync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
