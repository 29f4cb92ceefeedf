"""One thin file for each evaluation runner: it converts in, calls the core and converts out; none is loaded unasked."""
