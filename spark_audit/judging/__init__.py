"""Runs the checks over the evidence, judges their findings, and stores them. Start with run_checks.py."""
