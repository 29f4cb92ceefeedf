"""What was made of media once, kept in memory or in a folder."""
