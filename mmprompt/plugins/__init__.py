"""The doors to evaluation runners, one file each. Importing this package loads no runner."""
