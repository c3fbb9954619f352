"""The dashboard: it shows runs and attacks and requests new ones. The engine computes everything."""
