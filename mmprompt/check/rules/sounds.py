"""Rules on sounds."""
