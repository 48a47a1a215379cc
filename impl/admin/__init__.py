"""Administration: what `mqproof admin` does, and can be done from Python as well.

Begin with `admin.py`, how servers are asked. The operations are functions of an Admin, in `topics.py`,
`groups.py`, `brokers.py`, `messages.py` and `name_servers.py`; `commands/` and `cli.py` make commands.
"""
