"""Sound: facts from headers, samples and their measures, changes, written files."""
