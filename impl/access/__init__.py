"""Access control for the servers of the remoting port: accounts, permissions and white lists.

Read `permissions.py` first: its table has the permission of every request code. `acl.py` has the accounts and
the rules that they define, and `acl_file.py` the file that they come from.
"""
