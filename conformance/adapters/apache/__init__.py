"""Released Apache RocketMQ as a black box: its jars from Maven, its servers and clients as processes.

Start with `servers.py`, which starts and stops a name server and a broker. `artifacts.py` fetches the jars,
and `java_clients.py` runs Apache's own Java clients and mqadmin. If something is missing, ApacheMissingError
explains it in one line.
"""
