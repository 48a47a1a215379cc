"""The broker: request processors over a message store.

Begin with `broker.py`, which puts the parts together, and `processors.py`, the table of what answers which
request. A processor is a function of (services, request, channel). Those of producers and consumers are in
`send.py`, `pull.py`, `retries.py`, `queries.py` and `groups.py`, those of administrators in `*_admin.py`.
What a broker remembers is in tables that know nothing of requests: `topics.py`, `subscription_groups.py`,
`offsets.py`, `clients.py`, `queue_locks.py`, `holds.py`.
"""
