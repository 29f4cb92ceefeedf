"""Configs of other runners, read as tasks."""
