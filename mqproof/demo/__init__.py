"""`mqproof demo`: the main job, small. Start with `cli.py`; `real_run.py` is the run that is audited."""
