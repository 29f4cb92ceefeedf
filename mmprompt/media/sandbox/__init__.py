"""Decoders in a process of their own."""
