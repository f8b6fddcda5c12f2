"""The report in a real browser, as wide as a desk and as a phone: nothing overlaps, nothing is cut, everything is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.browser

WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
OVERLAPS = """
const found = [];
const visible = e => e.getClientRects().length > 0;
for (const parent of document.querySelectorAll('body, main, section, nav, .summary, .grid, .claim, figure, ul, ol')) {
  const children = [...parent.children].filter(visible);
  for (let i = 0; i < children.length; i++) for (let j = i + 1; j < children.length; j++) {
    const a = children[i].getBoundingClientRect(), b = children[j].getBoundingClientRect();
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && tall > 1) found.push(children[i].outerHTML.slice(0, 80) + ' / ' + children[j].outerHTML.slice(0, 80));
  }
}
return found;
"""
OUTSIDE = """
return [...document.querySelectorAll('h1, h2, p, li, figure, img, .claim, .badge, nav, figcaption')].filter(e => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && (r.left < -1 || r.right > document.documentElement.clientWidth + 1);
}).map(e => e.outerHTML.slice(0, 100));
"""
IMAGES = """
return [...document.querySelectorAll('img')].map(
  i => [i.complete, i.naturalWidth, i.getBoundingClientRect().width, i.alt.length]);
"""
TABLES = """
return [...document.querySelectorAll('.table')].map(d => {
  const t = d.querySelector('table').getBoundingClientRect();
  const cut = [...d.querySelectorAll('th, td')].filter(c => c.scrollWidth > c.clientWidth + 1).length;
  const size = parseFloat(getComputedStyle(d.querySelector('td')).fontSize);
  return [t.width, t.height, d.clientWidth, d.scrollWidth, getComputedStyle(d).overflowX, cut, size];
});
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    words = ["-m", "lawful", "reproduce", "all", "--quick", "--trials", "2", "--out", str(out)]
    subprocess.run([sys.executable, *words], check=True)
    return out


@pytest.fixture(scope="module", params=WIDTHS)
def browser(request, report, tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    width, height = WIDTHS[request.param]
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as driver:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": request.param == "phone"}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get((report / "report.html").as_uri())
        assert driver.execute_script("return window.innerWidth") == width
        yield request.param, driver


def test_everything_is_there(browser, report):
    _, driver = browser
    text = (report / "report.md").read_text()
    images = driver.execute_script(IMAGES)
    assert len(images) == len(re.findall(r"\]\(figures/", text)) >= 10
    tables = driver.execute_script(TABLES)
    assert len(tables) == len(re.findall(r"^\|---", text, flags=re.M)) >= 8
    headings = [h.text for h in driver.find_elements("css selector", "section h2")]
    assert headings == re.findall(r"^## (.*)$", text, flags=re.M)
    for name in ("Synthetic", "Sarcos", "Ranking", "Theory"):
        assert any(h.startswith(name) for h in headings)
    for link in driver.find_elements("css selector", "nav a"):
        target = link.get_attribute("href").partition("#")[2]
        assert driver.find_elements("id", target)
    badges = {b.text for b in driver.find_elements("css selector", ".badge")}
    assert "holds" in badges and badges <= {"holds", "does not hold", "undecided"}


def test_nothing_overlaps_or_leaves_the_page(browser):
    _, driver = browser
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert driver.execute_script(OVERLAPS) == []
    assert driver.execute_script(OUTSIDE) == []


def test_pictures_are_legible(browser):
    where, driver = browser
    for complete, natural, width, alt in driver.execute_script(IMAGES):
        assert complete and natural > 300 and alt > 20
        assert width >= (330 if where == "phone" else 440), "9 point letters must not shrink below 6.5"


def test_tables_are_legible(browser):
    where, driver = browser
    for width, height, room, content, overflow, cut, size in driver.execute_script(TABLES):
        assert width > 0 and height > 30 and cut == 0 and size >= 12
        assert content <= room + 1 or (where == "phone" and overflow == "auto"), "on a desk every table fits"


def test_it_prints(browser):
    where, driver = browser
    if where == "desk":
        pdf = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        assert len(pdf) > 50_000


def test_nothing_is_fetched(browser):
    _, driver = browser
    entries = driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [e for e in entries if not e.startswith("data:")] == []
