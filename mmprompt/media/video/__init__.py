"""Video: facts from headers, frames by time, frames as pictures, the sound track."""
