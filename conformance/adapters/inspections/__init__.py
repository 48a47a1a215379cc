"""Inspections: fixed sequences of requests to servers of their own, of which every field is compared.

Each one asks a part of the requests that the protocol documentation lists, and states each answer: from the
documentation and from the requests before. Requests and answers pass through the codec of the wire suite, so
that a code or a name that our servers and our client share is seen too. Start with `site.py`.
"""
