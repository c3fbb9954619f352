"""Try: one protection at one budget, or two side by side: accuracy, pictures and scores."""
