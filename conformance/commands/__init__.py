"""The commands of `mqproof` in this part: conform, trace-check, workload, behaviours, bench ...

The command modules combine the folders of this part. Start with `conform.py`.
"""
