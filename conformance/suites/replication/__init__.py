"""The replication suite: a master of ours and its slave, with crashes and cut links (Replication.tla).

The checkers read both brokers' logs, and a target has no operation for that. Therefore the suite examines our
own brokers only. `conformance/subjects/pair_run.py` draws and runs the steps of a pair from the seed, and
`behaviours` replays the model's steps, so that the suite has no machine and no oracle of its own.
"""
