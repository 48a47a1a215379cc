"""One function for each command: its options, its help, what it prints. `impl/admin/cli.py` names them."""
