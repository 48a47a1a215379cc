"""The console: web pages to look at a cluster and to operate it, ours or Apache's.

The pages are rendered on the server, without scripts and without resources of other hosts. They use the
operations of `admin` and the client; no protocol code is here. Start reading with application.py, which maps
addresses to pages, and request_guard.py, which every request passes first.
"""
