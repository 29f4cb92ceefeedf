"""Media: the only package that opens what a sample names.

classify.py tells what a source is without opening it, policy.py says what may be read, files.py opens files, network
asks allowed hosts, read.py puts these together. media_types.py and base64_text.py hold the one table of types and the
one codec. image, audio and video say what media are and change them; container guards the files that hold others.
engine.py leads there, through store (what was made once) and isolation (decoders in a process of their own).
"""

from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader, read_messages
from mmprompt.media.sources import Source, classify

__all__ = ["MediaPolicy", "MediaReader", "Source", "classify", "read_messages"]
