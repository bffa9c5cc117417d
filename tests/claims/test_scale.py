"""Every scale covers every claim, with conditions that exist, and can be cut down to some claims."""

from __future__ import annotations

import pytest

from lit_bump import config_files
from lit_bump.claims.scale import REGIMES_OF, SCALES, Scale
from lit_bump.errors import LitBumpError
from lit_bump.probes import PROBE_SETS


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_conditions_have_configs_and_start_from_others_of_the_scale(scale: Scale) -> None:
    names = [condition.name for condition in scale.conditions]
    assert len(names) == len(set(names))
    for condition in scale.conditions:
        assert condition.config.removesuffix(".yaml") in config_files.packaged()
        assert condition.init_from is None or condition.init_from in names
        assert condition.cost > 0
        assert scale.sets.test in condition.probes
        assert "--rprofile.max_share=null" in condition.options  # a claim needs every scheduled step


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_every_claim_has_its_conditions(scale: Scale) -> None:
    names = {condition.name for condition in scale.conditions}
    assert {"resnet18_clean", "vgg16_clean", "wrn_clean", "resnet18_blur1", "resnet18_blur2"} <= names
    assert {"resnet18_randlabel", "resnet18_noise"} <= names
    assert any(name.startswith("resnet18_adv") for name in names)


def test_paper_and_cifar_sets_are_the_papers() -> None:
    for name in ("cifar-small", "paper"):
        sets = SCALES[name].sets
        assert {*sets.blurs, sets.train, sets.noise, sets.noise_train} <= set(PROBE_SETS)


def test_some_claims_need_only_some_conditions() -> None:
    scale = SCALES["laptop"]

    def names(*claims: str) -> set[str]:
        return {condition.name for condition in scale.for_claims(list(claims)).conditions}

    assert names("C7") == {"resnet18_noise"}
    assert names("C4") == {"resnet18_clean", "resnet18_adv"}
    assert names("C5") == {"resnet18_clean", "resnet18_blur1", "resnet18_blur2"}
    assert names("C2") == {"resnet18_clean", "vgg16_clean", "wrn_clean"}
    assert names(*REGIMES_OF) == {condition.name for condition in scale.conditions}


def test_unknown_claim_is_refused() -> None:
    with pytest.raises(LitBumpError, match=r"there is no claim 'C9' \(valid: C1, C2"):
        SCALES["laptop"].for_claims(["C9"])
