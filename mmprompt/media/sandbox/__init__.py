"""The sandbox: decoders run in child processes with limits on memory, time and files."""
