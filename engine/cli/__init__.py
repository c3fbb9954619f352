"""The command line: one module for each command that takes more than a few lines."""
