"""A crash of a master's or a slave's system stands for many disk images, as one of Flush does: each is made
of the real files, and the broker is started from it.

Whatever is left, the log that it finds has what was durable and is a prefix of what was there; all of it is
durable then, and all of it is shown.
"""

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.crash_images.store_images import Recovered, first_crash, recover_each
from mqproof.conformance.subjects.stepped_pair import TOPIC, Node, SteppedPair
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk
from mqproof.impl.store import record

CRASH = "SystemCrash"


def expand(script: Script, found: Recovered, every: int = 1) -> None:
    """The images of the first system crash of a script, every so many-th of them; none if it has none."""
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
    """The messages that a start finds in the image."""
    after = Node(node.flush_mode, follows=node.follows)
    after.disk = node.disk.copy()
    after.disk.crash_os(image)
    after.start()
    found = [message for message, _ in after.records()]
    if after.durable() != len(found):
        raise DeviationError(f"{after.durable()} of {found} are durable after a start")
    if (shown := _shown(after)) != found:
        raise DeviationError(f"a start shows {shown} of {found}")
    return tuple(found)


def _shown(node: Node) -> list[str]:
    return [record.decode(one).message_id for one in node.running().get(TOPIC, 0, 0).records]
