"""Metrics in the text format of Prometheus, and the HTTP server for `/metrics`, `/healthz` and `/readyz`.

A server declares its metrics in a table and collects their values when they are scraped. Counters are plain
numbers of the code that counts, so they cost nothing more until then. Start reading at `metrics_server`.
"""
