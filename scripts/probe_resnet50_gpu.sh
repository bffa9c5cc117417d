#!/usr/bin/env bash
# Time ResNet-50 on 64 images at the paper's protocol and at `accurate`, on one GPU.
#   scripts/probe_resnet50_gpu.sh VAL_DIR [OUT]     VAL_DIR: ImageNet's validation images, a folder a class
# Without VAL_DIR the drawn shapes stand in for the photographs: the cost is the same, the curves are not.
# Without network, put the weights where the error line says, or set ENCODER=random:torchvision:resnet50.
set -euo pipefail
images=${1:+val64:$1}
images=${images:-shapes64}
out=${2:-probe_resnet50}
encoder=${ENCODER:-torchvision:resnet50:IMAGENET1K_V2}
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
for protocol in accurate paper; do
  start=$(date +%s)
  python -m lit_bump probe --encoder "$encoder" random:torchvision:resnet50 --images "$images" --protocol "$protocol" --accelerator gpu \
    --out "$out/$protocol"
  printf '%s: %d s for two encoders on 64 images\n' "$protocol" $(($(date +%s) - start))
done
