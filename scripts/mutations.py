"""Plant one fault after another in a copy of the project, run the tests that should notice, and print which did.

``python scripts/mutations.py --out docs/mutations.md``. A fault that no test notices is a hole in the tests. That every
fault can still be planted is itself a test (``tests/test_mutations.py``).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Mutation:
    """Hold a fault.

    Args:
        fault: in words.
        file: where it is planted.
        old: source that occurs once there.
        new: what takes its place.
        tests: files or folders that should notice.

    """

    fault: str
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    Mutation(
        "the antipode is left out", "lit_bump/measure/displacement.py",
        "signs: tuple[float, ...] = (1.0, -1.0),", "signs: tuple[float, ...] = (1.0, 1.0),", "tests/measure",
    ),
    Mutation(
        "directions come from the global stream", "lit_bump/measure/directions.py",
        "np.random.default_rng(words).standard_normal((BLOCK_PAIRS, dim), dtype=np.float32)",
        "np.random.standard_normal((BLOCK_PAIRS, dim)).astype(np.float32)", "tests/measure/test_directions.py",
    ),
    Mutation(
        "directions are not of unit length", "lit_bump/measure/directions.py",
        "torch.from_numpy((gaussian / norm).astype(np.float32))", "torch.from_numpy(gaussian)",
        "tests/measure/test_directions.py",
    ),
    Mutation(
        "the prediction grows as eta, not eta squared", "lit_bump/measure/image_group.py",
        "expected = np.square(protocol.etas) * prediction[:, None]\n        ratio",
        "expected = np.asarray(protocol.etas) * prediction[:, None]\n        ratio",
        "tests/measure/test_measurement.py",
    ),
    Mutation(
        "the standard error is halved", "lit_bump/measure/standard_error.py",
        "error = np.asarray(np.abs(ratio) * np.sqrt(np.maximum(variance, 0.0)))",
        "error = 0.5 * np.asarray(np.abs(ratio) * np.sqrt(np.maximum(variance, 0.0)))", "tests/measure",
    ),
    Mutation(
        "the noise rule never discards", "lit_bump/measure/image_group.py",
        "reason[~(noise <= tolerance * response) | (response <= 0)] = Reason.NOISE",
        "reason[response <= 0] = Reason.NOISE", "tests/measure",
    ),
    Mutation(
        "zero sensitivity passes as a number", "lit_bump/measure/image_group.py",
        "reason[prediction == 0] = Reason.ZERO_SENSITIVITY", "pass", "tests/measure",
    ),
    Mutation(
        "the median is a mean of three", "lit_bump/measure/bump.py",
        "low, high = np.maximum((count - 1) // 2, 0), np.maximum(count // 2, 0)",
        "low, high = np.maximum((count - 1) // 2 - 1, 0), np.maximum(count // 2, 0)",
        "tests/measure/test_bump.py",
    ),
    Mutation(
        "modes are restored at the top level alone", "lit_bump/measure/no_trace.py",
        "for part, training in modes:  # once more: a scripted module keeps its mode elsewhere",
        "for part, training in [(part, modes[0][1]) for part, _ in modes]:", "tests/measure/test_no_trace.py",
    ),
    Mutation(
        "random streams are not put back", "lit_bump/measure/no_trace.py",
        "        _restore_random_streams(streams)\n", "", "tests/measure/test_no_trace.py",
    ),
    Mutation(
        "a caller's autocast reaches the measurement", "lit_bump/measure/numerics.py",
        "stack.enter_context(torch.autocast(kind, enabled=False))", "pass", "tests/measure",
    ),
    Mutation(
        "float32 is rounded to bfloat16", "lit_bump/measure/frozen_encoder.py",
        "own = own.to(self.dtype)\n        elif",
        "own = own.to(torch.bfloat16).to(self.dtype)\n        elif", "tests/measure",
    ),
    Mutation(
        "the fast attention path stays on", "lit_bump/measure/numerics.py",
        "torch.backends.mha.set_fastpath_enabled(False)", "pass", "tests/measure",
    ),
    Mutation(
        "the step in the record is one too far", "lit_bump/callbacks/rprofile.py",
        "            step=trainer.global_step,\n", "            step=trainer.global_step + 1,\n", "tests/callbacks",
    ),
    Mutation(
        "the last step is not measured", "lit_bump/callbacks/rprofile.py",
        "if is_new and self.schedule.includes_last:", "if False:", "tests/callbacks/test_rprofile.py",
    ),
    Mutation(
        "every process writes files", "lit_bump/callbacks/run_record.py",
        "        if trainer.is_global_zero:\n            self._files", "        if True:\n            self._files",
        "tests/callbacks",
    ),
    Mutation(
        "a resumed run keeps what it has left behind", "lit_bump/callbacks/profile_files.py",
        "if later > step:", "if later > step + 10**9:", "tests/callbacks",
    ),
    Mutation(
        "files appear before they are whole", "lit_bump/whole_file.py",
        'partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")', "partial = path",
        "tests/test_whole_file.py",
    ),
    Mutation(
        "a logger's fault ends training", "lit_bump/callbacks/profile_log.py",
        "        except Exception as error:\n            if name",
        "        except KeyError as error:\n            if name", "tests/callbacks/test_rprofile_loggers.py",
    ),
    Mutation(
        "normalisation is folded in with the deviation squared", "lit_bump/measure/encoder.py",
        "return self.encoder((images - mean) / std)", "return self.encoder((images - mean) / std**2)",
        "tests/measure/test_encoder.py",
    ),
    Mutation(
        "an attack leaves its ball", "lit_bump/attacks/norm_ball.py",
        "perturbation = perturbation.clamp(-eps, eps)",
        "perturbation = perturbation.clamp(-2 * eps, 2 * eps)",
        "tests/attacks",
    ),
    Mutation(
        "weights that do not fit are taken", "lit_bump/encoders/weight_match.py",
        "if n_matched < least * len(own):", "if False:", "tests/encoders/test_weight_match.py",
    ),
    Mutation(
        "labels are permuted by another seed than asked for", "lit_bump/datamodules/training_variants.py",
        'seed=self.permutation_seed, stream="permuted labels"', 'seed=0, stream="permuted labels"', "tests/datamodules",
    ),
    Mutation(
        "TensorBoard drops steps", "lit_bump_tensorboard/plugin.py",
        "flags.samples_per_plugin.setdefault(PLUGIN, 0)", "pass", "tests/lit_bump_tensorboard/test_plugin.py",
    ),
    Mutation(
        "averaged weights pass as raw ones", "lit_bump/callbacks/measured_weights.py",
        "torch.equal(self._left, now)", "True", "tests/callbacks/test_measured_weights.py",
    ),
)  # fmt: skip


def noticed(mutation: Mutation, folder: Path) -> str:
    """Return the first test that a fault turns red; empty where none does."""
    path = folder / mutation.file
    source = path.read_text(encoding="utf-8")
    path.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not wheel",
        *(str(one.relative_to(folder)) for one in test_files(folder / mutation.tests)),
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    path.write_text(source, encoding="utf-8")
    red = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return red[1] if red and done.returncode else ""


def test_files(path: Path) -> list[Path]:
    """Return the test files of a folder, or the file itself; those that need long come last."""
    found = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return sorted(found, key=lambda one: "slow" in one.read_text(encoding="utf-8"))


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a fault's words")
    parser.add_argument("--out", type=Path, help="Markdown file")
    options = parser.parse_args()
    lines = [
        "# Planted faults", "",
        "Each fault is planted alone in a copy of the project, and the tests beside it are run until one of them turns",
        "red: `python scripts/mutations.py --out docs/mutations.md`.", "",
        "| fault | planted in | first test that turns red |", "|---|---|---|",
    ]  # fmt: skip
    missed = 0
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base, "copy")
        left_out = (".git", ".ci-venv", "runs", ".mypy_cache", ".ruff_cache")
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*left_out))
        for one in MUTATIONS:
            if options.only in one.fault:
                red = noticed(one, folder)
                missed += not red
                lines.append(f"| {one.fault} | `{one.file}` | {f'`{red}`' if red else 'NONE'} |")
                print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
