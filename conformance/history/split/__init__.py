"""Judges a history in parts on disk, so that memory is bounded by the largest part.

`splitter.py` writes the parts: by message and by queue, as `rules.Key` names them. `part_stages.py` judges
one part. `judged_parts.py`, where to start reading, runs the stages and merges their findings.
"""
