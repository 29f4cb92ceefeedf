"""Rules on videos."""
