"""Tests of the metrics: their text format, the HTTP server, and what is scraped from whole brokers."""
