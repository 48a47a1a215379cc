"""Tests of the DLedger group: core, disk, node."""
