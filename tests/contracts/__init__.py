"""Contracts: the public interfaces that every later version keeps, held against files that version 0.4.0 wrote."""
