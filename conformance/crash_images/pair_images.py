"""Expands a system crash of a master or a slave into many disk images, and starts the broker from each.

The images are made of the real files, as in `store_images`. From any image, the log found must be a prefix of
the log before the crash that contains all durable records. The whole log found is then durable and readable.
"""

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.crash_images.store_images import Recovered, first_crash, recover_each
from mqproof.conformance.subjects.stepped.replicating_pair import TOPIC, Node, SteppedPair
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk
from mqproof.impl.store.files import record

CRASH = "SystemCrash"


def expand(script: Script, found: Recovered, every: int = 1) -> None:
    """Check one of every `every` images of the first system crash of a script.

    Without a crash, nothing is checked.
    """
    if (at := first_crash(script, (CRASH,))) is None:
        return
    n = script.steps[at].parameters[0]
    before = list(script.states())[at]
    log, durable = before["log"][n], before["flushed"][n]
    allowed = {tuple(log[:length]) for length in range(durable, len(log) + 1)}
    target = SteppedPair()
    target.open(script)

    def reach() -> SimulatedDisk:
        for number in range(at):
            target.take(number)
        return target.node(n).disk

    try:
        recover_each(found, script, at, allowed, reach, lambda image: _recover(target.node(n), image), every)
    finally:
        target.close()


def _recover(node: Node, image: Image) -> tuple[str, ...]:
    """Return the messages that a start finds in the image."""
    after = Node(node.flush_mode, follows=node.follows)
    after.disk = node.disk.copy()
    after.disk.crash_os(image)
    after.start()
    found = [message for message, _ in after.records()]
    if after.durable() != len(found):
        raise DeviationError(f"after a start, only {after.durable()} of {found} are durable")
    if (shown := _shown(after)) != found:
        raise DeviationError(f"a start shows {shown} of {found}")
    return tuple(found)


def _shown(node: Node) -> list[str]:
    return [record.decode(one).message_id for one in node.running().get(TOPIC, 0, 0).records]
