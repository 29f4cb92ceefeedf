"""Files that hold other media: held against their bytes before a decoder sees them, and opened in one place."""
