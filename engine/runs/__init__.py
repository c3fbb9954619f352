"""Runs that outlive a page: a store of what was asked and told, workers that compute, a supervisor between them."""
