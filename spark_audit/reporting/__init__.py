"""Converts findings into reports: summary, plots, timelines, and the history of one message."""
