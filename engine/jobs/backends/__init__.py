"""Backends: where jobs run. The local one starts processes on this machine."""
