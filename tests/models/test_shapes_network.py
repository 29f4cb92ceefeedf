"""The network of ``builtin:shapes`` in NumPy computes what PyTorch computes with the same weights."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from readme_blocks import ROOT

from mmprompt.run.shapes.network import SIDE, scores, weights

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.models
SCRIPT = ROOT / "fixtures/shapes/train.py"


def test_numpy_and_pytorch_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("shapes_training", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    training = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(training)
    net = training.network().eval()
    layers = [layer for layer in net if hasattr(layer, "weight")]
    for name, layer in zip(("conv1", "conv2", "conv3", "linear"), layers, strict=True):
        for attribute, key in (("weight", name), ("bias", f"{name}_bias")):
            getattr(layer, attribute).data = torch.from_numpy(weights()[key])
    pictures = np.random.default_rng(3).integers(0, 256, (8, SIDE, SIDE, 3), np.uint8)
    with torch.no_grad():
        expected = net(torch.from_numpy(pictures).permute(0, 3, 1, 2) / 127.5 - 1).numpy()
    np.testing.assert_allclose(np.stack([scores(picture) for picture in pictures]), expected, rtol=1e-4, atol=1e-3)
