"""Holds a running implementation to the specification, through one small protocol that anyone can implement.

The folders, from the bottom to the top; each imports only from those before it:

- `engine`: runs a suite and reports what it found; it knows no suite.
- `history`: the rules over what many concurrent clients saw, and the file format of histories.
- `suites`: what is examined, one folder each, all of one shape. Start with `suites/flush/target.py`.
- `wire` (numbered cases for each request code), `traces` (event logs against TLA+ by TLC),
  `behaviours` (paths through the models' state graphs).
- `hostile`: named attacks of a client without rights.
- `faults`, `hosts`: what disturbs a broker, and where brokers of ours run.
- `mutants`: all injected defects of `impl`.
- `adapters`: what connects suites to the reference, to `impl`, and to any broker.
- `subjects`, `crash_images`: step-by-step drivers of our code, and the disk images that crashes leave.
- `guarantee`, `bench`: the guarantee matrix on running brokers, and benchmarks.
- `registry`: the list of all suites and of all mutants, each with what it needs to run.
- `pages`, `commands`: the generated pages, and the commands of `mqproof`.
"""
