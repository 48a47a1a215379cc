"""Judges a history in parts on disk. Memory holds one part for each process, and what all parts share.

`splitter.py` writes the parts: by message and by queue, as `rules.Key` names them. `part_stages.py` judges
one part. `judged_parts.py`, where to start reading, runs the stages and merges their findings.
"""
