"""Clusters and concurrent clients for workloads. Start with `clusters.py`."""
