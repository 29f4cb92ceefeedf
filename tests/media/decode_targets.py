"""Functions that tests have run in the decoding process: those that behave, and those that do not."""

import ctypes
import os
import signal
import sys
import threading
import time

from mmprompt.errors import SourceError, Where

calls = []


def length(data):
    return len(data)


def echo(value):
    return value


def size_of_image(data):
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
        return image.size


def walk_image(data):
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
        image.draft("RGB", (image.width // 8, image.height // 8))
        image.load()
        return image.size
