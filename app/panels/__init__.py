"""One chart per file; a panel shows itself when the runs on the page have said what it listens to."""
