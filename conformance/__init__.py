"""Holds a running implementation to the specification. Anyone can implement the protocol of a suite.

The folders, from the bottom to the top; each imports only from those before it:

- `engine`: runs a suite and reports what it found; it knows no suite.
- `history`: the rules over what many concurrent clients saw, and the file format of histories
- `suites`: what is examined, one folder each, all of one shape. Start with `suites/flush/target.py`.
- `wire`: numbered cases for each request code
- `traces`: event logs, checked against TLA+ by TLC
- `behaviours`: paths through the models' state graphs
- `answers`: rules that every answer of a server obeys, whatever a suite examines
- `hostile`: named attacks of a client without rights
- `damage`: named damages of a broker's files
- `faults`: fault controls of a broker, and relays that disturb its connections
- `hosts`: simulated machines, processes and network namespaces in which brokers of ours run
- `mutants`: all injected defects of `impl`
- `adapters`: connects suites to the reference, to `impl`, and to any broker
- `subjects`: step-by-step drivers of our code
- `crash_images`: the disk images that crashes leave
- `guarantee`: the guarantee matrix on running brokers
- `bench`: benchmarks
- `client_scenarios`: real clients at real brokers, over kills of the broker
- `registry`: the list of all suites and of all mutants, each with what it needs to run
- `mutation`: small systematic changes of `impl`, each judged by the suites
- `pages`: writes the generated pages of docs/
- `commands`: the commands of `mqproof`
"""
