"""The suite of workloads: many concurrent clients while faults are injected, judged by their histories."""
