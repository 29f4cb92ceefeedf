"""One file or folder for each evaluation runner. It converts rows and messages; the core does the rest."""
