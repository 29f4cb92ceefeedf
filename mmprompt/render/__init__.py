"""A task's rows as requests, and as JSON lines."""
