"""Rules on  tags, placeholders and characters."""
