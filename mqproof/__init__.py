"""RocketMQ specified, model-checked, implemented, attacked and audited under one catalogue of invariants.

Each part of the project is a subpackage. Start with `mqproof.impl` for the broker and the client, or with
`mqproof.spec` for the specification that every other part checks. Importing this package loads none of them.
"""
