"""Every page of the built documentation in a real browser, as wide as a phone: pictures and links are there, nothing is cut.

Build first: `make docs`. Links are followed on disk by `docs/check.py`, whose findings a test repeats here.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "docs" / "_build" / "html"
PAGES = sorted(path for path in BUILT.rglob("*.html") if "_static" not in path.parts)
LOOK = """
const wide = document.documentElement.clientWidth;
const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden';
const boxed = e => {  // inside something that scrolls by itself, or is a drawer that is closed
  for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX)) return true;
    if (p.matches('dialog:not([open]), .sr-only, .visually-hidden')) return true;
  }
  return false;
};
return {
  overflow: document.documentElement.scrollWidth - wide,
  broken: [...document.images].filter(i => !i.complete || i.naturalWidth === 0).map(i => i.src),
  cut: [...document.querySelectorAll('article h1, article h2, article h3, article p, article li, article img, article table, ' +
        'article pre, article dt, article math')]
    .filter(e => shown(e) && !boxed(e)).filter(e => {
      const r = e.getBoundingClientRect();
      return r.width > 0 && (r.left < -1 || r.right > wide + 1);
    }).map(e => e.outerHTML.slice(0, 120)),
  text: document.querySelector('article') ? document.querySelector('article').innerText.trim().length : -1,
};
"""


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"):
        options.add_argument(word)
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_page_load_timeout(60)
    # A window cannot be as narrow as a phone; the page can be told that it is.
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    yield driver
    driver.quit()


def look_at(browser, page):
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(page.as_uri())
    done = "return document.readyState === 'complete' && location.pathname === arguments[0] && !!document.querySelector('main')"
    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(done, page.as_posix()))


def test_the_documentation_is_built():
    names = {str(path.relative_to(BUILT)) for path in PAGES}
    assert {"index.html", "start.html", "gallery/index.html", "api/index.html"} <= names, "make docs builds the pages"
    assert sum(name.startswith("gallery/plot_") for name in names) >= 14
    assert sum(name.startswith("api/generated/") for name in names) >= 100


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(BUILT)))
def test_nothing_is_broken_or_cut_on_a_phone(page, browser):
    look_at(browser, page)
    assert browser.execute_script("return document.documentElement.clientWidth") == 390
    found = browser.execute_script(LOOK)
    assert found["broken"] == []
    assert found["overflow"] <= 0, found["cut"]
    assert found["cut"] == []
    if page.name not in ("search.html", "genindex.html"):
        assert found["text"] > 40


@pytest.mark.parametrize("page", [path for path in PAGES if path.name.startswith("plot_")], ids=lambda path: path.stem)
def test_gallery_pages_show_pictures_and_offer_notebooks(page, browser):
    look_at(browser, page)
    pictures = browser.execute_script("return [...document.querySelectorAll('article img')].map(i => i.naturalWidth)")
    assert pictures and min(pictures) > 200
    ends = browser.execute_script("return [...document.querySelectorAll('article a')].map(a => a.href)")
    assert any(end.endswith(".ipynb") for end in ends) and any(end.endswith(".py") for end in ends)


def test_links_lead_somewhere():
    spec = importlib.util.spec_from_file_location("check_docs", ROOT / "docs" / "check.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    assert check.broken_links(BUILT) == []
