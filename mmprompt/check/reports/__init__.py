"""Reports of a check, by name: ``text``, ``statistics``, ``json``, ``jsonl`` and the forms that other tools read."""
