"""Apache RocketMQ as released, as a black box: its jars by Maven, its servers and clients as processes.

Begin with `servers.py`, which starts and stops a name server and a broker; `artifacts.py` fetches the jars,
`clients.py` runs Apache's own Java clients and mqadmin. Whoever needs any of it and does not get it learns
why from ApacheMissingError, in one line.
"""
