"""The broker: request processors over a message store.

Begin with `broker.py`, which puts the parts together and has the table of processors; each processor is a
function of (services, request, channel) in `send.py`, `pull.py`, `queries.py` or `groups.py`.
"""
