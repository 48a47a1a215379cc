"""What the command lines of impl share: options, the values they stand for, errors, running, output.

It is below `admin`, `examine` and `command`, which never import each other. Start with `options.py`.
"""
