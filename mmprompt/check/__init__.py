"""Checks datasets and tasks: rules by family, findings, and their reports. ``check_dataset`` is the entry."""
