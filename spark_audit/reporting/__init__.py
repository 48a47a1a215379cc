"""Turns findings into reports: summary, plots, timelines, the story of one message."""
