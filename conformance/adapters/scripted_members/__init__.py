"""One of our DLedger members among scripted ones: every message that it sends is compared.

Start with `lives`, which has the scripts. `lives.txt` has the expected messages. An installed package lacks
this folder.
"""
