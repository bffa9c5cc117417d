"""The page as one file: the modules fit together, and no name gets out of the numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from lit_bump_tensorboard.page import STATIC, one_module, report_page

MODULES = sorted(STATIC.glob("*.js"))
NAME = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_modules_hold_one_thing_and_no_markup(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.startswith("// ")
    assert len(source.splitlines()) < 400
    for banned in (
        "innerHTML",
        "insertAdjacentHTML",
        "outerHTML",
        "document.write",
        "eval(",
        "http://www.w3.org/1999",
        "import(",
    ):
        assert banned not in source
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", source)


def test_no_name_is_used_twice_and_every_import_exists() -> None:
    counts = Counter(name for path in MODULES for name in NAME.findall(path.read_text(encoding="utf-8")))
    assert not [name for name, count in counts.items() if count > 1]
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        for names, file in re.findall(r'^import \{([^}]*)\} from "\./([\w.]+)";$', source, re.MULTILINE):
            exported = (STATIC / file).read_text(encoding="utf-8")
            for name in names.split(","):
                assert re.search(
                    rf"^export (?:async )?(?:function|class|const) {name.strip()}\b", exported, re.MULTILINE
                )
        assert source.count("import ") == len(re.findall(r'^import \{[^}]*\} from "\./[\w.]+";$', source, re.MULTILINE))


def test_modules_come_after_what_they_import() -> None:
    whole = one_module("boot.js", "source.js")
    assert "import {" not in whole
    assert not re.search(r"^export ", whole, re.MULTILINE)
    assert whole.index("class Store") < whole.index("class Page")
    assert whole.count("function linearScale") == 1


def test_no_name_closes_the_element_that_it_stands_in() -> None:
    hostile = "</script><script>alert(1)</script><!-- &amp; \u2028"
    page = report_page({"changes": {"series": [{"run": hostile}]}, "details": []}, title=hostile)
    (inside,) = re.findall(r'id="lit-bump-data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(inside)["changes"]["series"][0]["run"] == hostile
    assert page.count("</script>") == 2
    assert "alert(1)</script>" not in page
