"""Media: the only package that opens what a sample names.

sources.py classifies a source without opening it, policy.py is the permission to read, files.py opens files, fetch/
fetches URLs, and reader.py puts these together. request_reader.py bounds the media of one request. media_types.py and
base64_text.py hold the one table of types and the one codec. image/, audio/ and video/ inspect and change media;
ffmpeg/ guards the files that FFmpeg opens. engine.py makes changes, through cache/ (results made before) and sandbox/
(decoders in child processes).
"""

from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader, read_messages
from mmprompt.media.sources import Source, classify

__all__ = ["MediaPolicy", "MediaReader", "Source", "classify", "read_messages"]
