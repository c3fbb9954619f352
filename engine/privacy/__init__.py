"""Privacy accounting: accountants compute ε, the ledger adds up releases, and the solver finds the noise for an ε."""
