"""Pictures: headers, decoding, pixels, changes, and the least change that fits a target."""
