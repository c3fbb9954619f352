"""The store of runs, the queue, and the processes that work on it."""
