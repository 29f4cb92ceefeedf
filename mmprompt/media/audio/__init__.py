"""Sound: headers, samples and what they are like, changes, files written."""
