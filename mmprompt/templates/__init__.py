"""Prompt templates: one class a file."""
