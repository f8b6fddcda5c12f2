"""The studio in a real browser: a walk from a file to a model, what goes wrong on the way, and how it looks.

With LAWFUL_PICTURES=folder, pictures of every stage are kept there.
"""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import lawful
from commands import serving
from lawful.sets.named import NAMED

pytestmark = pytest.mark.browser

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PATIENCE = 300  # seconds: fits on a busy machine
OUTSIDE = """
const wide = document.documentElement.clientWidth;
return [...document.querySelectorAll('section, h1, h2, p, li, img, button, a, textarea, pre, .line, .table')].filter(e => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && (r.left < -1 || r.right > wide + 1);
}).map(e => e.outerHTML.slice(0, 100));
"""
CUT = """
const boxes = e => e.getClientRects().length && e.id !== 'file' && getComputedStyle(e).display !== 'inline';
return [...document.querySelectorAll('h1, h2, p, li, button:not(.column), a, label')].filter(
  e => boxes(e) && e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 100));
"""
CONTRAST = """
const linear = x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(x => linear(x / 255));
  return .2126 * r + .7152 * g + .0722 * b; };
const ground = e => { for (; e; e = e.parentElement) {
  const colour = getComputedStyle(e).backgroundColor; if (!/, 0\\)|transparent/.test(colour)) return colour; } };
const ratio = e => { const a = light(getComputedStyle(e).color), b = light(ground(e));
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); };
return [...document.querySelectorAll('h1, h2, p, li, button:not(:disabled), a, td, th, .line')]
  .filter(e => e.textContent.trim() && e.getClientRects().length && ratio(e) < 4.5).map(e => e.outerHTML.slice(0, 80));
"""


@pytest.fixture(scope="module")
def studio():
    with serving(upload_mb=1) as found:
        yield found


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    folder = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(folder), "download.prompt_for_download": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))) as found:
        found.downloads = folder
        found.set_script_timeout(60)
        yield found


def files(folder: Path) -> dict[str, Path]:
    rng, t = np.random.default_rng(0), np.linspace(-3, 3, 60)
    Y = np.c_[np.cos(t), np.sin(t)] + 0.1 * rng.standard_normal((60, 2))
    found = {
        "circle.csv": "angle,east,north,town\n" + "\n".join(f"{a:.4f},{e:.4f},{n:.4f},Bonn" for a, (e, n) in zip(t, Y)),
        "line.csv": "angle,height,width\n" + "\n".join(f"{a:.4f},{2 * a:.4f},{a:.4f}" for a in t),
        "empty.csv": "",
        "one.csv": "x,y\n1,2\n",
        "big.csv": "x,y\n" + "1.0,2.0\n" * 200_000,
    }
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "odd.csv").write_bytes(("größe;höhe\n" + "1,5;2,5\n" * 9).encode("cp1252"))
    return {path.name: path for path in folder.iterdir()}


class Page:
    """What a person does with the page."""

    def __init__(self, driver, studio, size="desk", dark=False):
        self.driver, self.label = driver, f"{size}-{'dark' if dark else 'light'}"
        width, height = SIZES[size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        driver.get(studio.address)
        self.until(lambda: driver.execute_script("return document.body.dataset.ready") == "yes", "the page is ready")
        assert "token" not in driver.current_url, "the token does not stay in the address"

    def until(self, condition, what, seconds=60):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, seconds, 0.1).until(lambda _: condition(), f"waited for: {what}")

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.find(selector).text

    def says(self, selector, words, seconds=60):
        self.until(lambda: words in self.text(selector), f"{selector} says {words!r}, not {self.text(selector)!r}", seconds)

    def load(self, path):
        self.find("#file").send_keys(str(path))

    def mark(self, *names):
        for button in self.driver.find_elements("css selector", ".column"):
            if button.text.removeprefix("✓ ") in names:
                button.click()

    def write(self, law):
        box = self.find("#formula")
        box.clear()
        box.send_keys(law)

    def keep(self, name):
        """Looked at by rules here, and by people where they ask for pictures."""
        assert self.driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert self.driver.execute_script(OUTSIDE) == []
        assert self.driver.execute_script(CUT) == []
        assert self.driver.execute_script(CONTRAST) == []
        if folder := os.environ.get("LAWFUL_PICTURES"):
            height = self.driver.execute_script("return document.documentElement.scrollHeight")
            width = self.driver.execute_script("return window.innerWidth")
            whole = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "scale": 1, "width": width, "height": height}}
            data = self.driver.execute_cdp_cmd("Page.captureScreenshot", whole)["data"]
            Path(folder, f"{self.label}-{name}.png").write_bytes(base64.b64decode(data))


def drawn(page, selector):
    return page.driver.execute_script(
        "const i = document.querySelector(arguments[0]); return i.complete && i.naturalWidth > 200 && i.clientWidth > 250",
        selector,
    )


@pytest.mark.parametrize("size, dark", [("desk", False), ("phone", False), ("desk", True), ("phone", True)])
def test_a_walk_from_a_file_to_a_model(driver, studio, tmp_path, size, dark):
    page = Page(driver, studio, size, dark)
    page.keep("1-start")
    page.load(files(tmp_path)["circle.csv"])
    page.says("#data-said", "circle.csv: 60 rows, 4 columns")
    assert "left out: town" in page.text("#data-notes")
    page.mark("east", "north")
    page.says("#outputs-said", "2 outputs: east, north")
    page.write("east**2 + nort**2 = 1")
    page.says("#law-lines", "did you mean 'north'?")
    page.keep("2-wrong-law")
    page.write("east**2 + north**2 = 1")
    page.until(lambda: driver.find_elements("css selector", "#law-lines math msup"), "the law is typeset")
    page.says("#law-said", "At the 60 labels it is off by")
    page.says("#picture-title", "Data and law")
    page.until(lambda: drawn(page, "#plot"), "the data are drawn")
    page.keep("3-right-law")
    if dark:
        return
    page.find("#go").click()
    page.until(lambda: page.find("#stop").is_displayed() and page.find("#bar").is_displayed(), "progress is shown")
    page.says("#fit-said", "Done in", PATIENCE)
    page.until(lambda: drawn(page, "#plot") and drawn(page, "#residuals"), "predictions are drawn")
    assert page.text("#picture-title") == "Predictions and law"
    rows = [row.text for row in driver.find_elements("css selector", "#errors tr")]
    assert rows[0].split() == ["output", "without", "with"] and len(rows) == 4 and rows[3].startswith("violation")
    assert "60 held-out rows" in page.text("#compare-said")
    page.keep("4-compared")
    for link, name in (("#get-model", "model.lawful"), ("#get-report", "report.html")):
        page.find(link).click()
        page.until(lambda name=name: (driver.downloads / name).exists(), f"{name} was downloaded")
    model = lawful.load(driver.downloads / "model.lawful")
    assert list(model.output_names_) == ["east", "north"]
    assert "A fit under a law" in (driver.downloads / "report.html").read_text(encoding="utf-8")
    for name in ("model.lawful", "report.html"):
        (driver.downloads / name).unlink()
    page.write("east**2 + north**2 = 1.4")
    page.says("#compare-old", "Of the fit before your last change.")
    page.until(lambda: page.find("#examine").is_enabled(), "the doctor can be asked")
    page.find("#examine").click()
    page.says("#alarms", "instead of 1.4 would fit", PATIENCE)
    assert page.find("#compare-old").is_displayed() and not page.find("#doctor-old").is_displayed()
    page.keep("5-doctor")


@pytest.mark.parametrize("size, dark", [("desk", False), ("phone", True)])
def test_a_plain_set_is_picked_changed_and_fitted(driver, studio, tmp_path, size, dark):
    from selenium.webdriver.support.ui import Select

    page = Page(driver, studio, size, dark)
    page.load(files(tmp_path)["circle.csv"])
    page.says("#data-said", "circle.csv: 60 rows")
    menu = Select(page.find("#sets"))
    assert {option.get_attribute("value") for option in menu.options} == {"", *NAMED}
    menu.select_by_value("Sphere")
    page.says("#law-said", "Mark the outputs first.")
    page.mark("east", "north")
    menu.select_by_value("Simplex")
    page.until(lambda: page.find("#formula").get_attribute("value") == "Simplex(total=1)", "the set is written")
    page.says("#law-lines", "c ≥ 0, Σ c = total")
    menu.select_by_value("Rotations")
    page.says("#law-lines", "Rotations")
    page.until(lambda: driver.find_elements("css selector", ".line.wrong"), "two outputs are no rotation matrix")
    page.keep("7-wrong-set")
    menu.select_by_value("Sphere")
    page.says("#law-lines", "‖c − center‖ = radius")
    page.says("#law-said", "At the 60 labels it is off by")
    page.write("Sphere(radius=1.5, center=[0, 0])")
    page.says("#law-lines", "center = [0, 0], radius = 1.5")
    page.says("#picture-title", "Data and law")
    page.until(lambda: drawn(page, "#plot"), "the data are drawn")
    page.keep("8-right-set")
    if dark:
        return
    page.write("Sphere(radius=1)")
    page.says("#law-lines", "center = 0.0, radius = 1")
    page.find("#go").click()
    page.says("#fit-said", "Done in", PATIENCE)
    assert "--law 'Sphere(radius=1)'" in page.text("#command")
    page.keep("9-set-compared")


def test_nothing_is_fetched_and_nothing_is_said_in_the_console(driver, studio):
    driver.get_log("browser")
    Page(driver, studio)
    entries = driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert entries and all(e.startswith((f"http://127.0.0.1:{studio.server_port}/", "data:", "blob:")) for e in entries)
    assert [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"] == []


@pytest.mark.parametrize(
    "name, words",
    [
        ("empty.csv", "empty.csv is empty"),
        ("one.csv", "one.csv has one row; to learn something"),
        ("big.csv", "big.csv has 1.5 MB; the studio takes 1 MB"),
    ],
)
def test_files_that_will_not_do(driver, studio, tmp_path, name, words):
    page = Page(driver, studio, "phone")
    found = files(tmp_path)
    page.load(found[name])
    page.says("#data-said", words)
    assert not page.find("#outputs").is_displayed()
    page.keep(f"6-{name.split('.')[0]}")
    page.load(found["odd.csv"])  # and the next one will
    page.says("#data-said", "odd.csv: 9 rows, 2 columns")
    assert "read as cp1252" in page.text("#data-notes") and "decimals by commas" in page.text("#data-notes")
    assert [b.text for b in driver.find_elements("css selector", ".column")] == ["größe", "höhe"]


def test_the_server_refuses_large_files_too(driver, studio, tmp_path):
    page = Page(driver, studio)
    driver.execute_script("state.limit = 1e12")  # a page that was tampered with
    page.load(files(tmp_path)["big.csv"])
    page.says("#data-said", "The file has 1.5 MB; the studio takes 1 MB.")


def test_a_fit_can_be_stopped(driver, studio):
    page = Page(driver, studio)
    page.find("#example").click()
    page.says("#law-said", "At the 120 labels")
    page.find("#go").click()
    page.until(lambda: page.find("#stop").is_displayed(), "it runs")
    page.find("#stop").click()
    page.says("#fit-said", "Stopped; nothing was kept.")
    assert page.find("#go").is_enabled() and not page.find("#progress").is_displayed()
    assert not page.find("#compare").is_displayed()


def test_two_tabs_do_not_mix(driver, studio, tmp_path):
    found = files(tmp_path)
    first = Page(driver, studio)
    first.load(found["circle.csv"])
    first.says("#data-said", "circle.csv: 60 rows")
    one = driver.current_window_handle
    driver.switch_to.new_window("tab")
    second = Page(driver, studio)
    second.load(found["line.csv"])
    second.says("#data-said", "line.csv: 60 rows")
    second.mark("height", "width")
    second.write("height = 2*width")
    second.says("#law-said", "At the 60 labels")
    two = driver.current_window_handle
    driver.switch_to.window(one)
    first.mark("east", "north")
    first.write("height = 2*width")
    first.says("#law-lines", "unknown name 'height'")
    assert first.text("#data-said").startswith("circle.csv")
    driver.switch_to.window(two)
    assert second.text("#data-said").startswith("line.csv")
    driver.close()
    driver.switch_to.window(one)


def test_other_hosts_are_refused(driver, studio):
    Page(driver, studio)
    driver.get(f"http://lawful.localhost:{studio.server_port}/")  # a name that leads here, and is not ours
    assert "answers to 127.0.0.1 and localhost only" in driver.page_source
    driver.get(f"http://127.0.0.1:{studio.server_port}/?token=guess")
    assert "open the address that the terminal shows" in driver.page_source
