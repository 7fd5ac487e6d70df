"""Loading a benchmark of the released structure, and one model's estimate."""

import tempfile
from pathlib import Path

import numpy as np

from asv_benchmarks._data import sized
from benchmarks_registry import load_benchmark, save_benchmark
from benchmarks_registry._release import convert

N_SUBJECTS, N_ITEMS, N_DIMS, N_ANCHORS = sized((57, 14_042, 10, 100), (3, 200, 2, 20))


def released_mmlu() -> dict:
    """A file of the released structure at the real size of MMLU, with simulated parameters."""
    rng = np.random.default_rng(0)
    subjects = np.array_split(np.arange(N_ITEMS), N_SUBJECTS)
    bench = {
        "seen_examples": np.sort(rng.choice(N_ITEMS, N_ANCHORS, replace=False)).tolist(),
        "examples_weights": {"mmlu": rng.dirichlet(np.ones(N_ANCHORS))},
        "irt_parameters": {
            "A": rng.normal(0.4, 0.5, size=(1, N_DIMS, N_ITEMS)),
            "B": rng.normal(0, 0.1, size=(1, 1, N_ITEMS)),
        },
        "optimal_lambdas": {"mmlu": 0.3},
        "scenarios_position": {"mmlu": list(range(N_ITEMS))},
        "subscenarios_position": {
            "mmlu": {f"subject_{i}": part.tolist() for i, part in enumerate(subjects)}
        },
    }
    return {"mmlu": bench}


class TinyMMLU:
    """One model's score on 14,042 items from 100 answers."""

    def setup(self):
        self.release = released_mmlu()
        tiny = convert(self.release, "tinyMMLU")
        self.folder = tempfile.TemporaryDirectory()
        self.path = save_benchmark(tiny, Path(self.folder.name) / "mmlu.npz", name="mmlu")
        self.tiny = load_benchmark(self.path)
        self.answers = np.random.default_rng(1).integers(0, 2, N_ANCHORS).astype(float)

    def teardown(self):
        self.folder.cleanup()

    def time_load(self):
        load_benchmark(self.path)

    def time_estimate(self):
        self.tiny.estimate(self.answers)
