"""Asking models: an OpenAI-compatible server, and conversations with it."""
