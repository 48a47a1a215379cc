"""The commands of `mqproof` that this part provides: conform, trace-check, workload, behaviours, bench ...

They are the top of the part: each joins what the folders below offer. Start with `conform.py`.
"""
