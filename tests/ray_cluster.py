"""A Ray cluster of three nodes on loopback, in a process of its own: ``python ray_cluster.py NODES FOLDER``.

It prints its address, kills a node for each line ``kill N`` on its input, and ends with its input.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LOOPBACK = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray takes 127.0.0.1 for an address
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
}
STORE = 80 << 20


class RayCluster:
    """The cluster, as a test drives it. ``environment`` is what a command needs to join it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.environment = {**LOOPBACK, "RAY_ADDRESS": self._answer()}

    def kill_node(self, number: int) -> None:
        """Kill a node that is not the head: its number counts from 1."""
        self._process.stdin.write(f"kill {number}\n")
        self._process.stdin.flush()
        assert self._answer() == "killed"

    def _answer(self) -> str:
        for line in self._process.stdout:
            if line.startswith("ray_cluster: "):
                return line.removeprefix("ray_cluster: ").strip()
        raise AssertionError("the cluster ended")


@contextmanager
def ray_cluster(folder: Path, environment: Mapping[str, str], nodes: int = 3) -> Iterator[RayCluster]:
    """Start a cluster of nodes with one CPU each; it ends with the block."""
    with subprocess.Popen(
        [sys.executable, __file__, str(nodes), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env={**os.environ, **LOOPBACK, **environment},
    ) as process:
        try:
            yield RayCluster(process)
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _serve(nodes: int, folder: str) -> None:
    os.environ["RAY_TMPDIR"] = folder
    os.mkdir(os.path.join(folder, "ray"))  # Ray writes the address there, and does not make the folder
    from ray.cluster_utils import Cluster

    own = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": STORE}
    cluster = Cluster(initialize_head=True, head_node_args={**own, "include_dashboard": False, "temp_dir": folder})
    others = [cluster.add_node(**own) for _ in range(nodes - 1)]
    print(f"ray_cluster: {cluster.address}", flush=True)
    for line in sys.stdin:
        cluster.remove_node(others[int(line.split()[1]) - 1], allow_graceful=False)
        print("ray_cluster: killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
