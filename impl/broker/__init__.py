"""The broker: request processors over a message store.

Begin with `broker.py`, which assembles the parts, and `processors/all_processors.py`, the table of request
codes and their processors. A processor is a function of (services, request, channel). Producers and consumers
use `processors/send.py`, `processors/pull.py`, `processors/retries.py`, `processors/queries.py` and
`processors/groups.py`. Administrators use `processors/*_admin.py`.

The broker's state is in tables that are independent of requests: `state/topics.py`, `state/offsets.py`,
`state/clients.py`, `state/queue_locks.py` and others. `long_polling.py` keeps the pulls that wait.
"""
