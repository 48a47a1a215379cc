"""A file system in memory that simulates the crashes of real file systems.

Everything written is in two layers: the cache, which every reader sees, and the durable layer, which `sync`
fills.

- A crash of the process keeps both layers.
- A crash of the operating system keeps the synced content and names. Of each file it also keeps any prefix of
  the unsynced writes, where the last write may be cut at any byte. Of each directory it also keeps any prefix
  of the unsynced name operations. Each file and each directory has its own prefix.
- A power loss keeps only what was synced.

Directories are not modelled: a directory exists as soon as it contains a file.
"""

import copy
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from mqproof.impl.runtime.disk import Disk, File, Lock, LockedError, Space, parent


class SimulatedCrashError(BaseException):
    """Raised by a step hook to stop the code under test at that step, as a crash would.

    It is not an Exception, so that no handler of the code under test catches its own crash.
    """


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that changes the disk, passed to the hook before it is done."""

    kind: str
    """create | write | sync | replace | remove | sync_directory"""
    path: str
    size: int = 0
    """The number of bytes written, or the size of the created file."""


@dataclass(frozen=True, slots=True)
class Image:
    """The unsynced data that one crash of the operating system keeps; everything not listed is lost.

    `names` maps a directory to the number of its unsynced name operations kept. `contents` maps a file (by
    the path it was created under) to the number of bytes of its unsynced writes kept, in the order written.
    """

    names: Mapping[str, int] = field(default_factory=dict)
    contents: Mapping[str, int] = field(default_factory=dict)


class SimulatedDisk:
    """The disk of one node. It survives the node's crashes; file handles and locks do not.

    `on_step`, when set, is called with each step before it is done. Raising OSError makes that call fail. A
    failed sync also discards the unsynced writes: as on Linux, they stay readable until the machine crashes,
    and can never become durable. Raising SimulatedCrashError stops the code there.
    """

    def __init__(self) -> None:
        self.on_step: Callable[[Step], None] | None = None
        self.on_read: Callable[[str], None] | None = None
        """Called with the path of each file that is read. Raising OSError makes that read fail."""
        self.steps = 0
        self.room = Space(1 << 40, 1 << 39)
        """The space that it reports; no operation ever fails for lack of space."""
        self.life = 0
        """The number of crashes so far; a handle opened before a crash is invalid after it."""
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._unsynced_names: dict[str, list[_NameChange]] = {}
        self._files_made = 0
        self._locked: set[str] = set()
        self.opened: set[_Handle] = set()
        """The open files of the running process."""

    # -- the Disk protocol

    def open(self, path: str) -> File:
        return _Handle(self, path, self._inode(path))

    def create(self, path: str, size: int, mode: int | None = None) -> File:
        if path in self._names:
            raise FileExistsError(f"{path} exists")
        self.step("create", path, size)
        inode = _Inode(f"{path}#{self._files_made}", 0o644 if mode is None else mode)
        self._files_made += 1
        inode.do(_Resize(size))
        self._change(_Link(path, inode))
        return _Handle(self, path, inode)

    def mode(self, path: str) -> int | None:
        return self._names[path].mode if path in self._names else None

    def exists(self, path: str) -> bool:
        return path in self._names or self.is_directory(path)

    def is_directory(self, path: str) -> bool:
        return any(name.startswith(f"{path}/") for name in self._names)

    def names(self, directory: str) -> list[str]:
        start = len(directory) + 1
        inside = (name[start:] for name in self._names if name.startswith(f"{directory}/"))
        return sorted({name.partition("/")[0] for name in inside})

    def remove(self, path: str) -> None:
        self._inode(path)
        self.step("remove", path)
        self._change(_Unlink(path))

    def replace(self, source: str, target: str) -> None:
        assert parent(source) == parent(target), f"rename within one directory only: {source} to {target}"
        self._inode(source)
        self.step("replace", target)
        self._change(_Rename(source, target))

    def sync_directory(self, directory: str) -> None:
        self.step("sync_directory", directory)
        for change in self._unsynced_names.pop(directory, []):
            change.apply(self._durable_names)

    def space(self, directory: str) -> Space:  # noqa: ARG002  # one file system for all
        return self.room

    def lock(self, path: str) -> Lock:
        if path in self._locked:
            raise LockedError(f"{path}: locked by another process")
        self._locked.add(path)
        return _SimulatedLock(self._locked, path)

    # -- called by tests and simulations

    def process(self) -> Disk:
        """Return the disk as one process sees it; after its crash every access raises SimulatedCrashError."""
        return _ProcessDisk(self)

    def crash_process(self) -> None:
        """Crash the process; the operating system continues and keeps the page cache."""
        self.life += 1
        self._locked = set()
        self.opened = set()

    def crash_os(self, choice: random.Random | Image) -> Image:
        """Crash the operating system. Returns the image that was kept, so that it can be replayed."""
        image = self.draw_image(choice) if isinstance(choice, random.Random) else choice
        self._keep(image)
        return image

    def lose_power(self) -> None:
        """Lose power: only what was synced remains."""
        self._keep(Image())

    def files(self, directory: str) -> list[str]:
        """Return the paths of all files below a directory, sorted."""
        return sorted(name for name in self._names if name.startswith(f"{directory}/"))

    def written(self, path: str) -> bytes:
        """Return the content of a file up to the last byte that was written."""
        return bytes(self._inode(path).cache.data)

    def damage(self, path: str, offset: int, data: bytes) -> None:
        """Change bytes of a file that were durable, without the knowledge of the process that has it open.

        No step is counted, because no operation causes it.
        """
        self._inode(path).damage(offset, data)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file that was durable to a size, as `damage` changes its bytes."""
        self._inode(path).truncate(size)

    def resize(self, path: str, content: bytes) -> None:
        """Give a file that was durable another content, which may be longer."""
        self._inode(path).resize(content)

    def lose(self, path: str) -> None:
        """Remove the name of a file that was durable. An open handle keeps its content, as on Linux."""
        self._inode(path)
        self._names.pop(path, None)
        self._durable_names.pop(path, None)

    def unsynced(self) -> Image:
        """Return the image that keeps everything: all data that a crash of the operating system may lose."""
        contents = {inode.label: cost for inode in self._inodes() if (cost := inode.unsynced_bytes())}
        names = {directory: len(changes) for directory, changes in self._unsynced_names.items() if changes}
        return Image(names, contents)

    def images(self) -> Iterator[Image]:
        """Yield every possible image, the one of a power loss first.

        Their number is the product over all files and directories, so use this for small cases only (see
        `image_count`).
        """
        most = self.unsynced()
        names, contents = list(most.names), list(most.contents)
        kept_names = itertools.product(*(range(most.names[name] + 1) for name in names))
        for chosen in kept_names:
            for kept in itertools.product(*(range(most.contents[label] + 1) for label in contents)):
                yield Image(dict(zip(names, chosen, strict=True)), dict(zip(contents, kept, strict=True)))

    def image_count(self) -> int:
        """Return how many images `images` would yield."""
        most = self.unsynced()
        count = 1
        for kept in itertools.chain(most.names.values(), most.contents.values()):
            count *= kept + 1
        return count

    def draw_image(self, chance: random.Random) -> Image:
        """Return a random possible image.

        For each file and directory it keeps nothing, everything or a random part; the three are equally
        likely.
        """
        most = self.unsynced()
        return Image(
            {name: _draw(chance, count) for name, count in most.names.items()},
            {label: _draw(chance, cost) for label, cost in most.contents.items()},
        )

    def copy(self) -> Self:
        """Return an independent disk in the same state; open handles and the hook belong to the original."""
        inodes = {id(inode): inode for inode in (*self._names.values(), *self._inodes())}
        copies = {identity: inode.copy() for identity, inode in inodes.items()}
        other = copy.copy(self)
        other.on_step = None
        other._names = {path: copies[id(inode)] for path, inode in self._names.items()}
        other._durable_names = {path: copies[id(inode)] for path, inode in self._durable_names.items()}
        other._unsynced_names = {
            directory: [
                _Link(change.path, copies[id(change.inode)]) if isinstance(change, _Link) else change
                for change in changes
            ]
            for directory, changes in self._unsynced_names.items()
        }
        other._locked = set(self._locked)
        other.opened = set()
        return other

    # -- internal methods

    def step(self, kind: str, path: str, size: int = 0) -> None:
        self.steps += 1
        if self.on_step is not None:
            self.on_step(Step(kind, path, size))

    def _inode(self, path: str) -> "_Inode":
        try:
            return self._names[path]
        except KeyError:
            raise FileNotFoundError(f"{path} does not exist") from None

    def _inodes(self) -> list["_Inode"]:
        """Return every file that could exist after a crash, each once."""
        changes = itertools.chain.from_iterable(self._unsynced_names.values())
        linked = (change.inode for change in changes if isinstance(change, _Link))
        found = {id(inode): inode for inode in itertools.chain(self._durable_names.values(), linked)}
        return list(found.values())

    def _change(self, change: "_NameChange") -> None:
        change.apply(self._names)
        self._unsynced_names.setdefault(change.directory(), []).append(change)

    def _keep(self, image: Image) -> None:
        for inode in self._inodes():
            inode.keep(image.contents.get(inode.label, 0))
        for directory, changes in self._unsynced_names.items():
            for change in changes[: image.names.get(directory, 0)]:
                change.apply(self._durable_names)
        self._unsynced_names = {}
        self._names = dict(self._durable_names)
        self.crash_process()


def _draw(chance: random.Random, most: int) -> int:
    return chance.choice((0, most, chance.randint(0, most)))


class _Content:
    """File content without its trailing zeros, because segments are mostly empty."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.size = 0

    def copy(self) -> "_Content":
        other = _Content()
        other.data, other.size = self.data[:], self.size
        return other

    def read(self, offset: int, size: int) -> bytes:
        end = offset + size
        if end <= len(self.data):
            return bytes(self.data[offset:end])
        wanted = max(0, min(size, self.size - offset))
        return bytes(self.data[offset : offset + wanted]).ljust(wanted, b"\0")

    def write(self, offset: int, data: bytes) -> None:
        if len(self.data) < offset:
            self.data.extend(bytes(offset - len(self.data)))
        self.data[offset : offset + len(data)] = data
        self.size = max(self.size, len(self.data))


@dataclass(slots=True)
class _Write:
    offset: int
    data: bytes

    def cost(self) -> int:
        return len(self.data)

    def apply(self, content: _Content, kept: int) -> None:
        content.write(self.offset, self.data[:kept])


@dataclass(slots=True)
class _Resize:
    size: int

    def cost(self) -> int:
        return 1

    def apply(self, content: _Content, kept: int) -> None:
        if kept:
            content.size = self.size


class _Inode:
    """A file without its names: cache, durable layer, and the ordered changes between them."""

    def __init__(self, label: str, mode: int) -> None:
        self.label = label
        self.mode = mode
        self.cache = _Content()
        self._durable = _Content()
        self._unsynced: list[_Write | _Resize] = []

    def copy(self) -> "_Inode":
        other = _Inode(self.label, self.mode)
        other.cache, other._durable = self.cache.copy(), self._durable.copy()
        other._unsynced = self._unsynced[:]
        return other

    def do(self, change: _Write | _Resize) -> None:
        change.apply(self.cache, change.cost())
        self._unsynced.append(change)

    def sync(self) -> None:
        for change in self._unsynced:
            change.apply(self._durable, change.cost())
        self._unsynced = []

    def forget_unsynced_writes(self) -> None:
        self._unsynced = [change for change in self._unsynced if isinstance(change, _Resize)]

    def damage(self, offset: int, data: bytes) -> None:
        for content in (self.cache, self._durable):
            if offset < content.size:
                content.write(offset, data[: content.size - offset])

    def resize(self, data: bytes) -> None:
        for content in (self.cache, self._durable):
            content.size = 0
            del content.data[:]
            content.write(0, data)

    def truncate(self, size: int) -> None:
        for content in (self.cache, self._durable):
            content.size = min(content.size, size)
            del content.data[content.size :]

    def unsynced_bytes(self) -> int:
        return sum(change.cost() for change in self._unsynced)

    def keep(self, count: int) -> None:
        self._make_durable(count)
        self._unsynced = []
        self.cache = self._durable.copy()

    def _make_durable(self, count: int) -> None:
        for change in self._unsynced:
            kept = min(count, change.cost())
            if kept:
                change.apply(self._durable, kept)
            count -= kept


@dataclass(frozen=True, slots=True)
class _Link:
    path: str
    inode: _Inode

    def directory(self) -> str:
        return parent(self.path)

    def apply(self, names: dict[str, _Inode]) -> None:
        names[self.path] = self.inode


@dataclass(frozen=True, slots=True)
class _Unlink:
    path: str

    def directory(self) -> str:
        return parent(self.path)

    def apply(self, names: dict[str, _Inode]) -> None:
        names.pop(self.path, None)


@dataclass(frozen=True, slots=True)
class _Rename:
    source: str
    target: str

    def directory(self) -> str:
        return parent(self.target)

    def apply(self, names: dict[str, _Inode]) -> None:
        names[self.target] = names.pop(self.source)


_NameChange = _Link | _Unlink | _Rename


class _Handle:
    """An open file. It becomes invalid when the process that opened it crashes."""

    def __init__(self, disk: SimulatedDisk, path: str, inode: _Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._life = disk.life
        self._open = True
        disk.opened.add(self)

    def size(self) -> int:
        return self._live().cache.size

    def read(self, offset: int, size: int) -> bytes:
        inode = self._live()
        if self._disk.on_read is not None:
            self._disk.on_read(self.path)
        return inode.cache.read(offset, size)

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        inode = self._live()
        self._disk.step("write", self.path, len(data))
        inode.do(_Write(offset, bytes(data)))

    def zero_tail(self, offset: int) -> int:
        written = self._live().cache.data[offset:]
        if written:
            self.write(offset, bytes(len(written)))
        return len(written.rstrip(b"\0"))

    def sync(self) -> None:
        if not self._open:
            return
        inode = self._live()
        try:
            self._disk.step("sync", self.path)
        except OSError:
            inode.forget_unsynced_writes()
            raise
        inode.sync()

    def close(self) -> None:
        self._open = False
        self._disk.opened.discard(self)

    def _live(self) -> _Inode:
        if self._life != self._disk.life:
            raise OSError(f"{self.path}: the process that opened this file has crashed")
        if not self._open:
            raise ValueError(f"{self.path}: the file is closed")
        return self._inode


class _ProcessDisk:
    """The disk as one process sees it; unusable after its crash. Open files check this themselves."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._life = disk.life

    def open(self, path: str) -> File:
        return self._alive().open(path)

    def create(self, path: str, size: int, mode: int | None = None) -> File:
        return self._alive().create(path, size, mode)

    def mode(self, path: str) -> int | None:
        return self._alive().mode(path)

    def exists(self, path: str) -> bool:
        return self._alive().exists(path)

    def is_directory(self, path: str) -> bool:
        return self._alive().is_directory(path)

    def names(self, directory: str) -> list[str]:
        return self._alive().names(directory)

    def remove(self, path: str) -> None:
        self._alive().remove(path)

    def replace(self, source: str, target: str) -> None:
        self._alive().replace(source, target)

    def sync_directory(self, directory: str) -> None:
        self._alive().sync_directory(directory)

    def space(self, directory: str) -> Space:
        return self._alive().space(directory)

    def lock(self, path: str) -> Lock:
        return self._alive().lock(path)

    def _alive(self) -> SimulatedDisk:
        if self._life != self._disk.life:
            raise SimulatedCrashError("the process that asks has crashed")
        return self._disk


class _SimulatedLock:
    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)
