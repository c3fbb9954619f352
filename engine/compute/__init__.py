"""Training on tensors: weights, noise, SGD, DP-SGD, the tensor SVD, and the threads that train clients."""
