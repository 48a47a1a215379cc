"""One function for each command: options, help and output. `impl/admin/cli.py` lists them."""
