"""Changes of Try: the fields behind *change*, and the suggested changes of side B."""
