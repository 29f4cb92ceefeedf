"""Asks a model on an OpenAI-compatible server: single questions and conversations."""
