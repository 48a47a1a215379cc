"""The DLedger group: core, disk, node."""
