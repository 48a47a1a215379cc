"""Administration: the operations of `mqproof admin`, which Python code can call as well.

Read `admin.py` first: it sends the requests. The operations are functions of an Admin, in `topics.py`,
`groups.py`, `brokers.py`, `messages.py`, `members.py` and `name_servers.py`. `commands/` and `cli.py` turn
them into commands.
"""
