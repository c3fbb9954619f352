"""Home of the privacy accounting: the accountant prices laws, the ledger adds releases up, the solver finds noise."""
