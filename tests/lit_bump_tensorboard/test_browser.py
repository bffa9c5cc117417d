"""The tab as a person sees it, in a real browser: live, shareable, safe, and quick."""

from __future__ import annotations

import csv
import json
import shutil
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from tests.lit_bump_tensorboard.tab_server import Writer, changes, free_port, served, table, write_runs

CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed"),
]
HOSTILE = "<img src=x onerror='window.hacked=1'>"


def headless() -> Any:
    """Return a browser without a window."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,1000",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Yield a browser without a window."""
    driver = headless()
    yield driver
    driver.quit()


def until(done: Callable[[], Any], what: str, seconds: float = 15.0) -> Any:
    """Wait for something.

    Returns:
        It.

    """
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = done()
        except WebDriverException:  # a page that is being drawn anew
            found = None
        if found:
            return found
        time.sleep(0.05)
    pytest.fail(f"not within {seconds} s: {what}")


def opened(browser: Any, address: str, **state: Any) -> None:
    """Open the tab, and go into its frame."""
    view = f"&p.lit_bump.view={urllib.parse.quote(json.dumps(state))}" if state else ""
    browser.switch_to.default_content()
    browser.get("about:blank")
    browser.get(f"{address}/#lit_bump{view}")
    into_frame(browser)
    until(lambda: read(browser, ".lit-bump > *"), "the page")


def read(browser: Any, selector: str, name: str = "textContent") -> list[Any]:
    """Read a property, or else an attribute, of all elements that a selector finds.

    In one script: the page draws itself anew at any moment, and an element that was found before would be gone.

    Returns:
        One value an element.

    """
    found: list[Any] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])]"
        ".map((one) => (typeof one[arguments[1]] === 'string' ? one[arguments[1]] : one.getAttribute(arguments[1])))",
        selector, name,
    )  # fmt: skip
    return found


def focused(browser: Any, name: str) -> str:
    """Return an attribute of the element that has the focus, else its text."""
    found: str = browser.execute_script(
        "const one = document.activeElement; return one.getAttribute(arguments[0]) || one.textContent", name
    )
    return found


def press(browser: Any, selector: str, *keys: str) -> None:
    """Give an element the focus and type; found anew where the page was drawn in between."""

    def pressed() -> bool:
        browser.find_element("css selector", selector).send_keys(*keys)
        return True

    until(pressed, f"keys to {selector}")


def click(browser: Any, selector: str) -> None:
    """Click an element; found anew where the page was drawn in between."""

    def clicked() -> bool:
        browser.find_element("css selector", selector).click()
        return True

    until(clicked, f"a click on {selector}")


def into_frame(browser: Any) -> None:
    """Go into the tab's frame."""
    browser.switch_to.default_content()
    frame = until(lambda: browser.find_elements("css selector", "iframe"), "the tab's frame")[0]
    browser.switch_to.frame(frame)


def n_curves(browser: Any) -> int:
    """Return how many profiles are drawn."""
    return len(read(browser, ".profiles path.curve"))


def shown_step(browser: Any) -> str:
    """Return the step that the slider says; empty before there is one."""
    return "".join(read(browser, ".slider output"))


def slide(browser: Any, back: int) -> None:
    """Move the slider back from its end."""
    browser.execute_script(
        "const s = document.querySelector('input[type=range]'); s.value = String(Number(s.max) - arguments[0]);"
        "s.dispatchEvent(new Event('input'))", back,
    )  # fmt: skip


def test_new_steps_appear_by_themselves_and_a_restart_is_survived(browser: Any, tmp_path: Path) -> None:
    log, port = tmp_path / "log", free_port()
    log.mkdir()
    with served(log, tmp_path / "x", port=port) as address:
        opened(browser, address)
        until(lambda: "No response profiles yet" in "".join(read(browser, ".empty")), "what to do")
        writer = Writer(log / "run")
        for n, step in enumerate((0, 10, 100), start=1):
            writer.profile(step)
            writer._file.flush()
            until(lambda n=n: n_curves(browser) == n, f"{n} curves", 12)  # type: ignore[misc]
        assert shown_step(browser) == "step 100"
        slide(browser, 1)
        until(lambda: shown_step(browser) == "step 10", "the chosen step")
        writer.profile(1000)
        writer._file.flush()
        until(lambda: read(browser, "input[type=range]", "max") == ["3"], "a new step", 12)
        assert shown_step(browser) == "step 10"  # a person has chosen it
        browser.switch_to.default_content()
        browser.execute_script("document.querySelector('iframe').style.visibility = 'hidden'")
        time.sleep(0.5)
        browser.get_log("performance")
        time.sleep(12)
        asked = [entry for entry in browser.get_log("performance") if "lit_bump/changes" in entry["message"]]
        assert not asked  # nobody looks
        browser.execute_script("document.querySelector('iframe').style.visibility = 'visible'")
        into_frame(browser)
    until(lambda: "No answer" in "".join(read(browser, ".status.bad")), "the lost server", 15)
    with served(log, tmp_path / "x", port=port):
        until(lambda: not read(browser, ".status.bad"), "recovery", 20)
        writer.profile(2000)
        writer._file.flush()
        until(lambda: read(browser, "input[type=range]", "max") == ["4"], "a step after it", 15)
    writer.close()


@pytest.mark.parametrize("loader", ["--load_fast=true", "--load_fast=false"])
def test_many_runs_are_drawn_quickly(browser: Any, tmp_path: Path, loader: str) -> None:
    write_runs(tmp_path / "log", 24, 150, ("shapes8", "shapes32", "noise32"))
    with served(tmp_path / "log", tmp_path / "x", loader) as address:
        changes(address, until=24 * 150 * 3)
        opened(browser, address)
        until(lambda: n_curves(browser) == 150, "all curves")
        times = []
        for back in range(1, 9):
            slide(browser, 10 * back)
            time.sleep(0.3)
            times.append(float(read(browser, ".lit-bump", "data-draw-ms")[0]))
        (first,) = read(browser, ".lit-bump", "data-first-ms")
        print(f"first drawing {first} ms after the page began, redraws {times} ms")
        assert min(times) < 500  # measured in benchmarks; here only that nothing grows with the square of the data
        assert len(read(browser, ".run")) == 24
        press(browser, "input[type=text]", "run_0")
        until(lambda: len(read(browser, ".run")) == 10, "the filter")
        assert focused(browser, "aria-label") == "filter runs by text"


def test_a_view_can_be_shared(browser: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "log", 3, 12, ("shapes8", "noise8"))
    with served(tmp_path / "log", tmp_path / "x", "--path_prefix=/tb") as address:
        changes(address, until=72)
        opened(browser, address, view="compare", probe="shapes8", run="run_02", scale="linear", parts=True)
        until(lambda: n_curves(browser) == 3, "a curve a run")
        assert read(browser, ".run.chosen button") == ["run_02"]
        until(lambda: "response and prediction" in "".join(read(browser, ".grid2")), "the parts")
        newest = shown_step(browser)
        slide(browser, 3)
        step = until(lambda: shown_step(browser) != newest and shown_step(browser), "another step")
        browser.switch_to.default_content()
        address_now = browser.current_url
        browser.get("about:blank")
        browser.get(address_now)
        into_frame(browser)
        until(lambda: n_curves(browser) == 3, "the same view")
        until(lambda: shown_step(browser) == step, "the same step")


def test_controls_work_with_the_keyboard_and_have_names(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    write_runs(tmp_path / "log", 2, 8)
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=16)
        opened(browser, address)
        until(lambda: n_curves(browser) == 8, "all curves")
        press(browser, "input[type=range]", Keys.ARROW_LEFT)
        until(lambda: n_curves(browser) == 7, "one step back")
        press(browser, "input[type=range]", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        until(lambda: n_curves(browser) == 5, "two more")
        assert focused(browser, "aria-label") == "optimiser step"
        unnamed = browser.execute_script(
            "return [...document.querySelectorAll('input,select,button')]"
            ".filter((one) => !one.ariaLabel && !one.textContent.trim() && !one.closest('label')).length"
        )
        assert unnamed == 0
        click(browser, "button[aria-label^='play']")
        until(lambda: n_curves(browser) == 8, "the play to its end", 10)
        for label in ("show", "filter"):
            name = read(browser, f"aside input[aria-label^='{label}']", "aria-label")[0]
            press(browser, f"aside input[aria-label^='{label}']", Keys.SPACE)
            time.sleep(0.4)  # drawn anew by then
            assert focused(browser, "aria-label") == name


def test_axes_map_and_bands_say_what_they_show(browser: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "log", 2, 10)
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=20)
        opened(browser, address, run="run_00", images=True)
        until(lambda: read(browser, "path.image"), "the images")
        text = "".join(read(browser, ".grid2"))
        for words in (
            "perturbation size η",
            "ratio r",
            "optimiser step (log)",
            "median r",
            "0.01",
            "largest median ratio",
        ):
            assert words in text
        assert read(browser, ".profiles path.band")
        assert read(browser, ".profiles line.reference")
        assert read(browser, ".map path.peak", "d") != [""]
        opened(browser, address, run="run_01")  # the flat one
        until(lambda: n_curves(browser) == 10, "the flat run")
        assert read(browser, ".map path.peak", "d") == [""]
        assert read(browser, ".verdict b") == ["none"]


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_follow_the_page_around(browser: Any, tmp_path: Path, dark: bool) -> None:
    write_runs(tmp_path / "log", 2, 6)
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=12)
        opened(browser, address)
        browser.switch_to.default_content()
        browser.execute_script("document.body.classList.toggle('dark-mode', arguments[0])", dark)
        into_frame(browser)
        theme = "dark" if dark else "light"
        until(lambda: browser.execute_script("return document.documentElement.dataset.theme") == theme, theme)


def test_hostile_names_stay_text_and_nothing_is_fetched_from_elsewhere(browser: Any, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "log" / "<b>bold<b>")
    for step in (0, 10):
        writer.profile(step, probe=HOSTILE)
    writer.close()
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=2)
        browser.get_log("browser")
        browser.get_log("performance")
        opened(browser, address)
        until(lambda: n_curves(browser) == 2, "the curves")
        assert browser.execute_script("return window.hacked") is None
        assert not read(browser, "img, .run b")
        assert HOSTILE in read(browser, "select option")[0]
        said = [entry["message"] for entry in browser.get_log("browser")]
        assert not [
            line for line in said if "Content Security Policy" in line or ("lit_bump" in line and "SEVERE" in line)
        ]
        urls = [
            json.loads(entry["message"])["message"]["params"].get("request", {}).get("url", "")
            for entry in browser.get_log("performance")
            if "Network.requestWillBeSent" in entry["message"]
        ]
        ours = [url for url in urls if "lit_bump" in url]
        assert ours
        assert all(url.startswith(address) or url.startswith(("data:", "blob:", "about:")) for url in ours)


def test_what_is_seen_can_be_saved(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    write_runs(tmp_path / "log", 1, 4)
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=4)
        opened(browser, address)
        until(lambda: n_curves(browser) == 4, "the curves")
        for name in ("CSV", "SVG", "PNG"):
            click(browser, f"button[aria-label$='as {name}']")
            until(lambda name=name: list(folder.glob(f"*.{name.lower()}")), name)  # type: ignore[misc]
        click(browser, "button[aria-label='save the growth as CSV']")
        until(lambda: list(folder.glob("*_growth.csv")), "the growth")
    (profiles,) = folder.glob("*_profiles.csv")
    with profiles.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 17
    assert {row["run"] for row in rows} == {"run_00"}
    shown = table(int(rows[-1]["step"]), height=2.0, speed=100.0)
    for name, place in (("log10_eta", 0), ("median_ratio", 1), ("q25", 2), ("low", 5), ("response", 7)):
        found = np.array([float(row[name]) for row in rows[-17:]])
        np.testing.assert_allclose(found, shown[place], rtol=1e-6)
    assert not rows[0]["low"]  # no band is seen but the newest curve's
    (growth,) = folder.glob("*_growth.csv")
    with growth.open(newline="") as file:
        assert [float(row["max_ratio"]) for row in csv.DictReader(file)][-1] == pytest.approx(shown[1].max(), rel=1e-6)
    (picture,) = folder.glob("*.svg")
    drawn = ElementTree.parse(picture).getroot()
    titles = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}title")}
    assert {"largest median ratio", "formation: step by η", "run_00, shapes8"} <= titles  # all that is seen
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}image"))) == 1  # the map
    (pixels,) = folder.glob("*.png")
    with Image.open(pixels) as image:
        seen = np.asarray(image.convert("L"))
    assert min(seen.shape) > 1000
    assert len(np.unique(seen)) > 50


def hover(browser: Any, selector: str, across: float, down: float) -> str:
    """Move the pointer over an element, to shares of its size.

    Returns:
        What the page says beside the pointer.

    """
    browser.execute_script(
        "const one = document.querySelector(arguments[0]); const box = one.getBoundingClientRect();"
        "one.dispatchEvent(new PointerEvent('pointermove', {bubbles: true,"
        "clientX: box.left + arguments[1] * box.width, clientY: box.top + arguments[2] * box.height}))",
        selector, across, down,
    )  # fmt: skip
    return "; ".join(read(browser, ".tooltip:not([hidden]) div"))


def test_numbers_stand_beside_the_pointer(browser: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "log", 2, 6)
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=12)
        opened(browser, address, run="run_00", parts=True)
        until(lambda: "response and prediction" in "".join(read(browser, ".grid2")), "the parts")
        over_map = hover(browser, ".map svg", 0.4, 0.5)
        assert all(word in over_map for word in ("step", "η", "median r", "images kept")), over_map
        shares = [(across / 60, down / 40) for across in range(5, 60) for down in range(40)]
        for selector, words in (
            (".profiles svg", ("step", "η", "median r", "90 % of the median")),
            (".growth svg", ("run_00", "step", "max r")),
            (".card:last-child svg", ("η", "response")),
        ):
            said = (hover(browser, selector, *place) for place in shares[::3])
            assert any(all(word in line for word in words) for line in said), selector
        assert hover(browser, ".profiles svg", 0.001, 0.001) == ""


def test_what_a_page_has_missed_is_asked_for_again(browser: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "log", 1, 3)
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=3)
        opened(browser, address)
        since = browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "import('./static/store.js').then(({Store}) => {"
            "  const store = new Store(); const one = {run: 'a', tag: 't', probe: 'p', error: null};"
            "  const point = (step) => ({step, ladder: 0, median: [], n_kept: []});"
            "  const ladders = [[]]; const asked = [];"
            "  store.apply({now: 5, ladders, series: [{...one, all_steps: [0, 1], points: [point(0), point(1)]}]});"
            "  asked.push(store.since);"
            "  store.apply({now: 6, ladders, series: [{...one, all_steps: [0, 1, 2], points: []}]});"
            "  asked.push(store.since);"
            "  store.apply({now: 6, ladders, series: [{...one, all_steps: [0, 1, 2], points: [0, 1, 2].map(point)}]});"
            "  asked.push(store.since); done(asked); }).catch((error) => done(String(error)))"
        )
        assert since == [5, 0, 6]


def test_runs_can_be_told_apart(browser: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "log", 30, 2)
    with served(tmp_path / "log", tmp_path / "x") as address:
        changes(address, until=60)
        opened(browser, address)
        until(lambda: len(read(browser, ".run")) == 30, "the runs")
        looks = browser.execute_script(
            "return [...document.querySelectorAll('.run .swatch line')]"
            ".map((one) => `${one.getAttribute('stroke')} ${one.getAttribute('stroke-dasharray')}`)"
        )
        assert len(set(looks)) == 30
        press(browser, "input[type=text]", "run_2")
        until(lambda: len(read(browser, ".run")) == 10, "the filter")
        kept = browser.execute_script(
            "return [...document.querySelectorAll('.run .swatch line')]"
            ".map((one) => `${one.getAttribute('stroke')} ${one.getAttribute('stroke-dasharray')}`)"
        )
        assert kept == looks[20:30]  # whatever else is listed


def test_the_report_opens_from_the_file_system(browser: Any, tmp_path: Path) -> None:
    from lit_bump.__main__ import main
    from lit_bump.measure.formation import step_file
    from tests.figures.drawn_profiles import drawn_profile

    run = tmp_path / "run" / "version_0"
    for step, height in enumerate((0.0, 3.0, 6.0)):
        drawn_profile(height, step=step).save(step_file(run, "shapes8", step))
    (run / "config.yaml").write_text("{}\n")
    assert main(["report", str(run), "-o", str(tmp_path / "report.html")]) == 0
    browser.switch_to.default_content()
    browser.get_log("browser")
    browser.get((tmp_path / "report.html").as_uri())
    until(lambda: n_curves(browser) == 3, "the curves")
    until(lambda: read(browser, ".profiles path.band"), "the band")
    assert read(browser, ".verdict b") == ["bump"]
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
