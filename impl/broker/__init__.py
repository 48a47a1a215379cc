"""The broker: request processors over a message store.

Begin with `broker.py`, which assembles the parts, and `processors.py`, the table of request codes and their
processors. A processor is a function of (services, request, channel). The processors for producers and
consumers are in `send.py`, `pull.py`, `retries.py`, `queries.py` and `groups.py`; those for administrators
are in `*_admin.py`.

The broker's state is in tables that are independent of requests: `topics.py`, `subscription_groups.py`,
`offsets.py`, `clients.py`, `queue_locks.py`, `long_polling.py`.
"""
