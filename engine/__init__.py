"""LeakLens: what federated learning leaks, and what protection costs.

A question is a frozen `RunSpec` (spec.py); its parts stand on six shelves: models, datasets, partitions, methods,
attacks, metrics, one file each. `forecast(spec)` tells what it will cost before it is run. `run(spec)` (loop.py) is a
generator of events: stage, then round by round send, train, merge, measure, spend, keep. A worker process listens to
it, a supervisor writes what it says to the store (runs/), and whoever wants to show it reads the store. Methods decide
what leaves a client (methods/base.py); the ledger (privacy/) decides what that costs in every view; `probe` (breach.py)
shows what an adversary in that view would have seen.

Nothing is imported here: see README, "A newcomer's path".
"""
