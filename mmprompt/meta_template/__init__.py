"""Prompts into what a model takes: one string, or messages."""
