"""The named invariants of a master and its slave over one observed run (spec/tla/Replication.tla)."""
