"""Simulates whole clusters: programs of faults, witnesses of what clients see, and the judge."""
