"""Collects the evidence that the checks read, from what the passes found. Begin at collect.py, then
gather.py."""
