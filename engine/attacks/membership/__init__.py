"""Attacks on membership: was this record, or this client, in the training data?"""
