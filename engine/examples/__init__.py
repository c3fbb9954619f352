"""The finished examples that ship with LeakLens: runs, attacks and a sweep."""
