"""Jobs: the store of runs and attacks, the queue, and the processes that run them."""
