"""The report is one file that needs no network, and nothing from a run gets into its markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from lit_bump.claims.claims_table import as_json, as_markdown, facts, print_findings
from lit_bump.claims.finding import Finding
from lit_bump.claims.report_page import report_page
from lit_bump.claims.scale import SCALES
from lit_bump.claims.verdicts import judge
from tests.claims.made_up_evidence import SETS, as_in_the_paper

HOSTILE = '<script>alert("x")</script>'


class Tags(HTMLParser):
    """Collect the tags and the addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append(tag)
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href")]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "C1.png"
    Image.fromarray(np.zeros((2, 2, 3), dtype=np.uint8)).save(path)
    return path


def test_report_is_one_file_without_links(picture: Path) -> None:
    scale, evidence = SCALES["laptop"], as_in_the_paper()
    findings = judge(evidence, SETS)
    record = as_json(findings, scale, evidence)
    page = report_page("Claims", findings, {"C1": picture}, facts(scale, evidence), record)
    tags = Tags()
    tags.feed(page)
    assert {"script", "link", "iframe"}.isdisjoint(tags.tags)
    assert all(address.startswith("data:image/png;base64,") for address in tags.addresses)
    assert tags.addresses
    assert not re.search(r"https?://", page)
    for one in findings:
        assert one.statement in page
    assert "digest of the images" in page
    beside = report_page("Claims", findings, {}, facts(scale, evidence), record, formation="formation.html")
    assert '<a href="formation.html">' in beside


def test_names_and_texts_of_runs_are_escaped(picture: Path) -> None:
    finding = Finding("C1", HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), "undecided", HOSTILE)
    record = {"conditions": {HOSTILE: {"command": HOSTILE, "profiles": {HOSTILE: _profile()}}}}
    page = report_page(HOSTILE, [finding], {"C1": picture}, [HOSTILE], record)
    assert HOSTILE not in page
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.tags


def _profile() -> dict[str, object]:
    return {"bump": {"verdict": HOSTILE}, "n_images": 1, "images_digest": HOSTILE, "encoder_digest": HOSTILE}


def test_table_markdown_and_json_hold_the_same_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    scale, evidence = SCALES["laptop"], as_in_the_paper()
    findings = judge(evidence, SETS)
    print_findings(findings, Console(width=200))
    printed, markdown = capsys.readouterr().out, as_markdown(findings, scale, evidence)
    record = as_json(findings, scale, evidence)
    for one in findings:
        row = next(line for line in markdown.splitlines() if f"**{one.claim}**" in line)
        assert row.endswith(f"| {one.verdict} |")
        assert one.claim in printed
    assert [one["verdict"] for one in record["claims"]] == [one.verdict for one in findings]
    assert record["conditions"]["resnet18_clean"]["profiles"][SETS.test]["bump"]["verdict"] == "bump"


def test_brackets_of_intervals_survive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Finding("C1", "a", "b", "c", ("max r 5 [4, 6]",), "holds")
    print_findings([finding], Console(width=200))
    assert "max r 5 [4, 6]" in capsys.readouterr().out
