"""`mqproof store inspect | verify`: what is in a store directory, and whether it is whole."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mqproof.impl.terminal.errors import fail, one_line
from mqproof.impl.terminal.output import write_json

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
store = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(store, name="store", help="Examine a store directory of our broker or of a released broker.")

Directory = Annotated[Path, typer.Argument(help="storePathRootDir of a broker.")]
Slots = Annotated[int, typer.Option(min=1, help="maxHashSlotNum, if it differs from RocketMQ's default.")]
Json = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the result to this file; - is standard output.")
]


@app.callback()
def main() -> None:
    """Examine a store directory."""


@store.command()
def inspect(directory: Directory, index_slots: Slots = 5_000_000, json: Json = None) -> None:
    """Show what is in a store directory.

    Nothing is changed and no lock is taken.

    Example: mqproof store inspect build/store
    """
    from mqproof.impl.examine import tables
    from mqproof.impl.examine.contents import contents

    opened, in_use = _open("inspect", directory, index_slots)
    found = contents(opened, in_use=in_use)
    if json is None or str(json) != "-":
        tables.show(found)
    _write("inspect", json, found)


@store.command()
def verify(directory: Directory, index_slots: Slots = 5_000_000, json: Json = None) -> None:
    """Print one line for each damage of a store directory.

    Nothing is changed and no lock is taken. A store that is in use changes while it is read: data written
    during the check may look damaged, and a line says so.

    Exit codes: 0 no damage; 1 damage; 2 wrong use or no store.

    Example: mqproof store verify build/store
    """
    from mqproof.impl.examine.verify import verify as check

    opened, in_use = _open("verify", directory, index_slots)
    verdict = check(opened)
    if json is None or str(json) != "-":
        if in_use:
            print("note: a broker is using this store; data that it wrote during the check may look damaged")
        for note in verdict.notes:
            print(f"note: {note}")
        for damage in verdict.damages:
            print(damage)
        counts = f"{verdict.records} records, {verdict.entries} queue entries, {verdict.keys} keys"
        print(f"{len(verdict.damages)} damages; {counts}" if verdict.damages else f"whole: {counts}")
    _write("verify", json, {"in_use": in_use, **_fields(verdict)})
    raise typer.Exit(1 if verdict.damages else 0)


def _open(command: str, directory: Path, index_slots: int) -> tuple[Any, bool]:
    from mqproof.impl.examine.directory import open_directory
    from mqproof.impl.runtime.disk import ReadOnlyDisk
    from mqproof.impl.store.errors import StoreError

    disk = ReadOnlyDisk()
    try:
        opened = open_directory(disk, str(directory), index_slots)
        return opened, disk.is_locked(opened.layout.lock)
    except StoreError as error:
        fail(f"store {command}", str(error))
    except OSError as error:
        fail(f"store {command}", one_line(error))


def _fields(verdict: Any) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in verdict.__slots__}


def _write(command: str, path: Path | None, value: Any) -> None:
    import msgspec

    if path is not None:
        write_json(f"store {command}", path, msgspec.json.encode(value).decode())
