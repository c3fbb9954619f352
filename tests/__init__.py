"""The tests, folder by folder beside what they test; every folder has this file, else it would shadow its namesake."""
