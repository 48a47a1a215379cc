"""Runs the checks over the evidence, judges their findings, and keeps these. Begin at run_checks.py."""
