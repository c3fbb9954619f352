"""Results of finished runs and attacks: reports, summaries and rankings."""
