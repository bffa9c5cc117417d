"""Full precision inside, and every switch of torch as it was outside: in all states that torch lets a user set."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from lit_bump.measure import measure_profile
from lit_bump.measure.numerics import exact_numerics
from tests.conftest import RunPython
from tests.measure.tiny_encoders import few, process_state, random_images

CPU = torch.device("cpu")

# One process for all: each state is set, measured in, compared and taken back. torch refuses to read the old switches
# once the new ones contradict them, so "refused" is a state too, and must be the same before and after.
STATES = """
import sys, torch, torch._dynamo, warnings
from lit_bump.measure.numerics import exact_numerics

warnings.simplefilter("ignore")
B = torch.backends
NODES = ["", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn"]

def node(name):
    found = B
    for part in filter(None, name.split(".")):
        found = getattr(found, part)
    return found

def read(get):
    try:
        return get()
    except RuntimeError:
        return "refused"

def new_switches():
    return {name: node(name).fp32_precision for name in NODES if hasattr(node(name), "fp32_precision")}

def old_switches():
    return [read(lambda: B.cuda.matmul.allow_tf32), read(lambda: B.cudnn.allow_tf32), matmul()]

def matmul():
    return read(torch.get_float32_matmul_precision)

def set_old(cuda, cudnn, matmul):
    torch.set_float32_matmul_precision(matmul)
    B.cuda.matmul.allow_tf32 = cuda
    B.cudnn.allow_tf32 = cudnn

def set_new(name, value):
    node(name).fp32_precision = value

STATES = __STATES__
which = sys.argv[1]
exec(STATES[which])
new, old = new_switches(), old_switches()
try:
    with exact_numerics(torch.device("cpu"), torch.float32):
        inside = new_switches()
        assert set(inside.values()) <= {"none", "ieee"}, inside
        assert all(value in (False, "highest", "refused") for value in old_switches()), old_switches()
        assert read(torch.get_float32_matmul_precision) in ("highest", "refused")
        raise KeyError("inside")
except KeyError:
    pass
assert new_switches() == new, (new, new_switches())
assert old_switches() == old, (old, old_switches())
os._exit(0)
"""

STATE_LINES = {
    "as started": "",
    "medium": "torch.set_float32_matmul_precision('medium')",
    "high": "torch.set_float32_matmul_precision('high')",
    "both old": "set_old(True, True, 'high')",
    "cudnn off": "set_old(False, False, 'highest')",
    "cuda on": "B.cuda.matmul.allow_tf32 = True",
}
NEW_LINES = {
    "general tf32": "set_new('', 'tf32')",
    "general ieee": "set_new('', 'ieee')",
    "matmul tf32": "set_new('cuda.matmul', 'tf32')",
    "conv tf32": "set_new('cudnn.conv', 'tf32'); set_new('cudnn.rnn', 'tf32')",
    "conv ieee, matmul tf32": "set_new('cudnn.conv', 'ieee'); set_new('cuda.matmul', 'tf32')",
    "mkldnn bf16": "set_new('mkldnn.matmul', 'bf16'); set_new('mkldnn.conv', 'bf16')",
    "old, then new": "torch.set_float32_matmul_precision('medium'); set_new('cuda.matmul', 'ieee')",
}


def _states() -> dict[str, str]:
    has_new = hasattr(torch.backends.cuda.matmul, "fp32_precision")
    return {**STATE_LINES, **(NEW_LINES if has_new else {})}


def test_every_precision_switch_is_put_back(run_python: RunPython, tmp_path_factory: pytest.TempPathFactory) -> None:
    script = tmp_path_factory.mktemp("states") / "states.py"
    text = STATES.replace("__STATES__", repr(_states()))
    # a forked child for every state: torch is imported once, and no state poisons the next
    script.write_text(
        text.replace(
            "which = sys.argv[1]\n",
            "import os\n"
            "with exact_numerics(torch.device('cpu'), torch.float32):\n"  # loads what it needs, once for all children
            "    pass\n"
            "for which in STATES:\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        break\n"
            "    status = os.waitpid(child, 0)[1]\n"
            "    print(which, 'failed' if status else 'passed', flush=True)\n"
            "else:\n"
            "    sys.exit()\n",
        )
    )
    done = run_python(str(script))
    results = [line for line in done.stdout.splitlines() if line.endswith(("passed", "failed"))]
    assert results == [f"{name} passed" for name in _states()], done.stdout + done.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inside_nothing_shortens_the_arithmetic(dtype: torch.dtype) -> None:
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode(), exact_numerics(CPU, dtype):
        assert not torch.is_autocast_enabled("cpu")
        assert not torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
        assert torch.get_default_dtype() == dtype
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.mha.get_fastpath_enabled()
        assert process_state()["sdp"] == [False, False, True, False]
        a, b = torch.rand(2, 64, 64)
        exact = (a.double() @ b.double()).to(dtype)
        torch.testing.assert_close((a @ b).to(dtype), exact, rtol=1e-5, atol=1e-5)


def test_an_encoder_runs_with_all_switches_at_full_precision() -> None:
    seen: set[tuple[object, ...]] = set()
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn

    def watching(images: Tensor) -> Tensor:
        seen.add((torch.get_float32_matmul_precision(), matmul.allow_tf32, cudnn.allow_tf32))
        return images.flatten(1).sin()

    before = torch.get_float32_matmul_precision(), matmul.allow_tf32, cudnn.allow_tf32
    torch.set_float32_matmul_precision("high")
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    chosen = torch.get_float32_matmul_precision(), matmul.allow_tf32, cudnn.allow_tf32
    try:
        measure_profile(watching, random_images(1), few())
        assert (torch.get_float32_matmul_precision(), matmul.allow_tf32, cudnn.allow_tf32) == chosen
    finally:
        torch.set_float32_matmul_precision(before[0])
        matmul.allow_tf32, cudnn.allow_tf32 = before[1:]
    assert seen == {("highest", False, False)}


def test_switches_are_put_back_also_after_an_error() -> None:
    torch.backends.mha.set_fastpath_enabled(True)
    before = process_state()
    with pytest.raises(KeyError, match="inside"), exact_numerics(CPU, torch.float64):
        raise KeyError("inside")
    assert process_state() == before


def test_a_users_attention_kernel_and_fast_path_stay_chosen() -> None:
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            before = process_state()
            measure_profile(nn.Flatten(), random_images(1), few())
            assert process_state() == before
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
