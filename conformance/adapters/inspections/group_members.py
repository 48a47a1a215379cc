"""One of our DLedger members among scripted ones: every message that it sends, and when.

See docs/reference/protocol/dledger.md. The scripts are in `conformance/adapters/scripted_members/`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.scripted_members import failing_lives, lives, strange_files, timed_lives
from mqproof.conformance.adapters.scripted_members.scripted_group import Lives
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_loop import SimulatedLoop


def _lived(scripts: Lives, file: Path) -> Callable[[Site], Coroutine[Any, Any, None]]:
    """Return the inspection that runs scripts, and compares what is sent with the lines of a file."""

    async def look(site: Site) -> None:
        site.rule = chapters.DLEDGER
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop), "inspections run in simulated time"
        for text in lives.differences(await lives.lived(loop, scripts), file):
            site.report(text)

    return look


GROUP_TIMES: Final = Inspection("times of a member", _lived(timed_lives.LIVES, timed_lives.EXPECTED))
GROUP_DISKS: Final = Inspection("disks of a member", _lived(failing_lives.LIVES, failing_lives.EXPECTED))
GROUP_FILES: Final = Inspection("files of a member", _lived(strange_files.LIVES, strange_files.EXPECTED))
GROUP_MESSAGES: Final = Inspection("messages of a member", _lived(lives.LIVES, lives.EXPECTED))
