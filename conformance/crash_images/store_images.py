"""Expands a crash in a behaviour of Flush into many disk images, and recovers from each.

The images are made of the real files. For data that was not synced, any prefix of each file may remain, cut
at any byte. From each image, recovery must reach a state that the model reaches from the same crash.
"""

import random
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from mqproof.conformance.behaviours.corpus import Script, Variables
from mqproof.conformance.behaviours.cover import Steps
from mqproof.conformance.behaviours.json_values import order, plain
from mqproof.conformance.behaviours.replay import Failure
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.subjects.stepped.crashing_store import SteppedStore
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk
from mqproof.impl.store.errors import StoreError

T = TypeVar("T", bound=Hashable)
"""The visible result of a recovery."""

CRASHES: Final = ("OsCrash", "PowerLoss")
_RECOVERY: Final = ("RecoverLog", "TruncateQueues", "Redispatch", "Start")
_SEEN: Final = ("log", "queue", "next_offset", "flushed", "dispatched", "abort", "persisted", "committed")
_DRAWN: Final = 20
"""The number of images in which all files are cut at random positions."""


@dataclass(slots=True)
class Recovered:
    edges: int = 0
    """The number of crash edges that were expanded."""
    images: int = 0
    outcomes: int = 0
    """The number of different states that recoveries reached, summed over the crash edges."""
    allowed: int = 0
    """The number of states that the model allows, summed over the crash edges."""
    failures: list[Failure] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """The counts for a report."""
        return {"crash_edges": self.edges, "disk_images": self.images}


class States:
    """The model's states, indexed by their variables."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps
        self._numbers = {order(plain(state)): number for number, state in enumerate(steps.states)}

    def after_recovery(self, before: Variables) -> frozenset[str]:
        """Return the results that may be seen after recovery from any system crash in that state."""
        out, number = self._steps.out, self._numbers[order(before)]
        todo = [step.target for step in out[number] if step.label[0] in CRASHES]
        found: set[str] = set()
        while todo:
            state = todo.pop()
            recovering = [step.target for step in out[state] if step.label[0] in _RECOVERY]
            if recovering:
                todo += recovering
            else:
                found.add(_projected(plain(self._steps.states[state])))
        return frozenset(found)


def expand(script: Script, states: States, found: Recovered, every: int = 1) -> None:
    """Check one of every `every` images of the first system crash of a script.

    Without a crash, nothing is checked.
    """
    at = first_crash(script, CRASHES)
    if at is None or (before := list(script.states())[at])["phase"] != "running":
        return
    target = SteppedStore()
    target.open(script)

    def reach() -> SimulatedDisk:
        for number in range(at):
            target.take(number)
        return target.disk

    allowed = states.after_recovery(before)
    try:
        recover_each(found, script, at, allowed, reach, lambda image: _recover(target, script, image), every)
    finally:
        target.close()


def first_crash(script: Script, actions: Collection[str]) -> int | None:
    """Return the number of the first step of a script that is one of these actions; None if there is none."""
    return next((number for number, step in enumerate(script.steps) if step.action in actions), None)


def recover_each(
    found: Recovered,
    script: Script,
    at: int,
    allowed: Collection[T],
    reach: Callable[[], SimulatedDisk],
    recover: Callable[[Image], T],
    every: int = 1,
) -> None:
    """Recover from one of every `every` images that the crash at a step may leave.

    Each result must be allowed. `reach` runs the steps before the crash, and returns the disk that the crash
    affects.
    """
    landed: set[T] = set()
    try:
        for image in list(images(reach()))[::every]:
            found.images += 1
            landed.add(recover(image))
    except (DeviationError, StoreError) as error:
        found.failures.append(Failure(script, at, str(error)))
    found.edges += 1
    found.outcomes += len(landed)
    found.allowed += len(allowed)
    for wrong in sorted(map(str, landed.difference(allowed)))[:1]:
        found.failures.append(
            Failure(script, at, f"recovery reaches {wrong}, which the model does not allow")
        )


def _recover(target: SteppedStore, script: Script, image: Image) -> str:
    """Return the result of recovery from the image, as text."""
    after = SteppedStore()
    after.open(replace(script, steps=()))
    try:
        after.continue_from(target, image)
        return _projected(after.look())
    finally:
        after.close()


def _projected(state: Variables) -> str:
    return order({name: state[name] for name in _SEEN})


def images(disk: SimulatedDisk) -> Iterator[Image]:
    """Yield images with one file cut at each byte while the others are whole or empty, and random images."""
    most = disk.unsynced()
    for label, size in most.contents.items():
        for others in (most.contents, dict.fromkeys(most.contents, 0)):
            for kept in range(size + 1):
                yield Image(most.names, {**others, label: kept})
    for directory, count in most.names.items():
        for kept in range(count + 1):
            yield Image({**most.names, directory: kept}, most.contents)
    chance = random.Random(0)
    for _ in range(_DRAWN):
        yield disk.draw_image(chance)
