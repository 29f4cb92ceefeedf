"""Dataset configs of other runners, read as tasks."""
