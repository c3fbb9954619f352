"""The screen Leak: attacks on one picture, under several protections."""
