"""LeakLens: what federated learning leaks, and what protection costs.

A question is a frozen `RunSpec` (spec.py); its parts stand on six shelves: models, datasets, partitions, methods,
attacks, metrics, one file each. `forecast(spec)` tells what it will cost before it is run. `run(spec)` (loop.py) is a
generator of events: plan, then round by round send, train, merge, measure, spend, keep. A worker process listens to
it, a supervisor writes what it says to the store (runs/), and whoever wants to show it reads the store. Methods decide
what leaves a client (methods/base.py); the ledger (privacy/) decides what that costs in every view; `probe` (breach.py)
shows what an adversary in that view would have seen.

Nothing heavy is imported here: see README, "A newcomer's path".
"""

import os

# One thread for numpy's algebra: with more, the last bits of an ε depend on their number, and idle ones eat the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
