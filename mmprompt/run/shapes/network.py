"""The network of ``builtin:shapes`` in NumPy: three convolutions and one linear layer, about 26,000 parameters.

``fixtures/shapes/train.py`` trains it and writes ``weights.npz``.
"""

from __future__ import annotations

import io
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

SIDE = 32
"""Pixels of each side of a picture."""

CHANNELS = (3, 16, 32, 44)
"""Of the picture, and after each convolution. Each halves the sides."""


@cache
def weights() -> dict[str, Array]:
    """Return the trained weights by name."""
    import numpy as np  # noqa: PLC0415  # heavy

    file = io.BytesIO(resources.files(__package__).joinpath("weights.npz").read_bytes())
    with np.load(file, allow_pickle=False) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


def scores(picture: NDArray[np.uint8]) -> Array:
    """Return one score for each answer to the first question, then one for each answer to the second.

    Args:
        picture: ``SIDE`` x ``SIDE`` x 3 values of RGB.
    """
    import numpy as np  # noqa: PLC0415  # heavy

    known = weights()
    values: Array = picture.astype(np.float32).transpose(2, 0, 1) / 127.5 - 1
    for layer in range(1, len(CHANNELS)):
        values = _halved(_convolved(values, known[f"conv{layer}"], known[f"conv{layer}_bias"]))
    found: Array = known["linear"] @ values.reshape(-1) + known["linear_bias"]
    return found


def _convolved(values: Array, kernel: Array, bias: Array) -> Array:
    """Return the 3 x 3 convolution of a picture with a border of zeros, negative values set to 0."""
    import numpy as np  # noqa: PLC0415  # heavy

    framed = np.pad(values, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(framed, (3, 3), axis=(1, 2))
    mixed: Array = np.tensordot(kernel, windows, axes=((1, 2, 3), (0, 3, 4))) + bias[:, None, None]
    return np.maximum(mixed, 0)


def _halved(values: Array) -> Array:
    """Return the largest of each 2 x 2 values."""
    channels, height, width = values.shape
    largest: Array = values.reshape(channels, height // 2, 2, width // 2, 2).max(axis=(2, 4))
    return largest
