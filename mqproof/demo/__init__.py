"""`mqproof demo`: a small run of the main job. Start with `cli.py`; `real_run.py` is the audited run."""
