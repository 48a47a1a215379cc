"""A filter server: runs consumers' functions in WebAssembly beside a broker, and delivers what they select.

Start with `server.py`. `decisions.py` has the rule about functions that fail. `functions.py` is the
sandbox, and needs the extra `mqproof[filter]`. See docs/reference/protocol/filters.md, "Filter servers".
"""
