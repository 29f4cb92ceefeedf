"""Readers of binary tables, archives and folders, and of rows that are spread over several lists or files."""
