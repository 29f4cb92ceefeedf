"""Opening media with FFmpeg: bytes in memory, one demuxer, a deadline; and facts of Matroska files."""
