"""What finished runs and attacks amount to: reports, summaries, rankings."""
