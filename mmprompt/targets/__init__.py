"""One emitter per wire form, and what each target takes (``limits.toml``)."""
