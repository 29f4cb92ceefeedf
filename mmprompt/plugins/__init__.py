"""Plugins: one file per runner, loaded by the runner; nothing here imports one until it is used."""
