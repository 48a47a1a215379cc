"""Fuzzing: targets that state invariants, and engines that search for an input that violates one.

A campaign runs an engine (our own coverage-guided one, or atheris) on a target in worker processes. It saves
each finding as a small file that `mqproof fuzz replay` reproduces. Begin at `target.py`, then
`engine/campaign.py`.

The modules and folders, from the bottom to the top; each imports only from those before it:

- `target`: the interface of a fuzz target
- `count_line`: the progress of campaigns of known length
- `simulation_target`: a target whose inputs are programs for a simulation
- `store`, `raft`: the simulations of a store on a failing disk, and of a DLedger group
- `cluster`: the simulation of whole clusters, which the next five extend
- `deferred`, `filters`, `groups`, `hostile`, `routes`: deferred messages, filter servers, consumer groups,
  attackers, name servers
- `targets`: the fuzz targets, one module each
- `engine`: campaigns, workers, search, corpus, coverage, minimisation
- `defects`: injected defects that targets must find
- `mutants`, `simulation`: judge the targets and the simulations by these defects
- `fault_campaign`: single faults over all files of a store
- `hours`: hours of a cluster, for a simulated year
- `fault_page`, `released_faults`: the page of such campaigns, and campaigns on released brokers
- `year`: many simulated hours, which are kept
- `fault_command`: the command `mqproof fuzz faults`
- `cli`: the command `mqproof fuzz`
"""
