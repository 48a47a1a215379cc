"""Hosts that run brokers and name servers: simulated machines, real processes, network namespaces."""
