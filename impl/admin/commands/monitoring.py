"""The command that watches consumer groups."""

import asyncio
from typing import Annotated

from mqproof.impl.admin import monitoring, tables, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import count
from mqproof.impl.admin.run import Site, perform, say


def start_monitoring(
    site: Site,
    interval_s: Annotated[int, count("i", "interval", "Repeat every N seconds.")] = 60,
) -> None:
    """Report what is wrong with consumer groups, again and again until interrupted.

    Reported are messages that wait, failed messages, and members whose subscriptions differ. Each line has
    the time, the group and the topic.

    \b
    Example: mqproof admin startMonitoring -n 127.0.0.1:9876 -i 30
    """

    async def work(admin: Admin) -> None:
        while True:
            groups, found = await monitoring.findings(admin)
            now = times.show(times.now_ms()).partition(".")[0]
            for each in found:
                say(tables.visible(f"{now} {each.group} {each.topic or '-'}: {each.text}"))
            if not found:
                say(f"{now} nothing is wrong, of {groups} groups in all")
            await asyncio.sleep(interval_s)

    perform(site, work)
