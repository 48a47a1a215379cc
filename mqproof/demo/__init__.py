"""`mqproof demo`: a small run of every layer. Start with `cli.py`; `real_run.py` is the audited run."""
