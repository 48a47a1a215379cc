"""Simulates DLedger groups: programs of faults, the group on simulated hosts, and the judge."""
