"""The fuzzing engine: campaigns, workers, search, corpus, coverage, minimisation.

Start with `campaign.py`.
"""
