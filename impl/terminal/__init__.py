"""Code shared by the command lines of impl: options, their values, errors, running, output.

It is imported by `admin`, `examine` and `command`, which never import each other. Read `options.py` first.
"""
