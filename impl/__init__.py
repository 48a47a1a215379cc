"""The clean-room broker: name server, broker, store and client that speak RocketMQ's protocol and formats.

Read `command/cli.py` first: it lists the programs. Then read `remoting/`, `store/`, `broker/`, `namesrv/` and
`client/`. All I/O and all use of the clock go through `runtime/`.

The folders, from the bottom to the top; each imports only from those before it:

- `runtime`: the clock, the disk, the network and randomness, each in production and simulated form
- `metrics`: metrics in the text format of Prometheus
- `remoting`: the wire: frames, commands, headers, bodies and connections
- `filtering`: SQL92 expressions over message properties
- `store`: the disk: commit log, consume queues, index and checkpoint
- `replication`: a master's log, copied to its slaves
- `dledger`: an elected group of members that keeps one log
- `access`: accounts, permissions and white lists
- `namesrv`: the name server
- `broker`: the broker, which connects the wire and the store
- `client`: producers and consumers
- `chaos`: a proxy between clients and any cluster, which injects faults
- `filter_server`: consumers' functions, run in WebAssembly beside a broker
- `terminal`: options, errors and output that the command lines share
- `embedded`: a name server and a broker inside the process of a test
- `admin`: the operations of `mqproof admin`
- `examine`: reads a store directory without changing it
- `command`: the command line of the servers, of `send` and of `consume`
- `diagnosis`: finds out what happened to a message: `mqproof diagnose`
- `console`: the web pages of `mqproof console`
- `integrations`: our client inside Celery, FastStream, taskiq and OpenTelemetry
"""
