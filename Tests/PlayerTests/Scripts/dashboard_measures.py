"""The checks of dashboard.py for accessibility, and its measurements."""
import statistics
import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from dashboard_browser import LOW_CONTRAST, LOW_GRAPHICS_CONTRAST

# The visible texts in which a number is shown to the right of the unit that follows it.
SCRAMBLED = """
const found = [], range = document.createRange();
for (const element of document.querySelectorAll('.figure .value, .figure .note, .number, .rows [role=gridcell]')) {
    const node = element.firstChild, match = /\\d[^]*?[a-z]/i.exec(element.textContent);
    if (node?.nodeType !== Node.TEXT_NODE || !match || !element.checkVisibility()) continue;
    const [first, last] = [0, match[0].length - 1].map(offset => {
        range.setStart(node, match.index + offset);
        range.setEnd(node, match.index + offset + 1);
        return range.getBoundingClientRect();
    });
    if (first.top === last.top && first.left > last.left) found.push(element.textContent);
}
return found;
"""


# Whether the element with the focus is visible at its upper and lower edge, and not covered by another element.
UNCOVERED = """
const element = document.activeElement, { left, top, bottom, width } = element.getBoundingClientRect();
return [top + 4, bottom - 4].every(y => element.contains(document.elementFromPoint(left + width / 2, y)));
"""


# The element with the focus, whether it has the focus for the first time, and whether it and the focus are visible.
# Players show the focus in their own controls. The focus leaves the document after its last element.
FOCUS = """
const element = document.activeElement, { outlineStyle, outlineWidth } = getComputedStyle(element);
if (element === document.body) return ['', visited.size === 0, true];
const isNew = !visited.has(element) || element.matches('video, audio');
visited.add(element);
const { top, bottom, width } = element.getBoundingClientRect();
const isShown = width > 0 && bottom > 0 && top < innerHeight;
const hasOutline = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
return [element.outerHTML.slice(0, 120), isNew, isShown && (hasOutline || element.matches('video, audio'))];
"""


def open_dialog(page):
    """Selects a row, and opens the preload dialog."""
    page.open(with_token=True)
    page.js("document.querySelector('.rows [type=checkbox]').click()")
    page.js("document.querySelector('.toolbar .primary').click()")
    page.wait(lambda: page.js("return document.querySelector('dialog')?.open"))


def check_contrast(page):
    counts = {}
    for scheme in ["light", "dark"]:
        for view in page.views():
            page.emulate(scheme=scheme)
            page.open(view)
            result = page.js(LOW_CONTRAST)
            assert not result["found"], f"{scheme} {view}: {result['found'][:5]}"
            counts[scheme] = counts.get(scheme, 0) + result["count"]
        open_dialog(page)
        result = page.js(LOW_CONTRAST)
        assert not result["found"], f"{scheme} dialog: {result['found'][:5]}"
    return counts


def check_graphics(page):
    """Checks the contrast of maps, charts, bars, fields and the focus with their neighbors."""
    counts = {}
    for scheme in ["light", "dark"]:
        for view in page.views():
            page.emulate(scheme=scheme)
            page.open(view)
            result = page.driver.execute_async_script(LOW_GRAPHICS_CONTRAST)
            assert not result["found"], f"{scheme} {view}: {sorted(set(result['found']))[:8]}"
            counts[scheme] = counts.get(scheme, 0) + result["count"]
        open_dialog(page)
        result = page.driver.execute_async_script(LOW_GRAPHICS_CONTRAST)
        assert not result["found"], f"{scheme} dialog: {sorted(set(result['found']))[:8]}"
    return counts


def check_names(page):
    total = 0
    for view in page.views():
        page.open(view)
        count, found = page.unnamed()
        assert not found, f"{view}: without a name: {found}"
        headings = page.js("return [...document.querySelectorAll('h1')].filter(each => each.checkVisibility()).length")
        assert headings == 1, f"{view}: {headings} headings of level 1"
        total += count
    open_dialog(page)
    found = page.unnamed()[1]
    assert not found, f"dialog: without a name: {found}"
    live = page.js("return [...document.querySelectorAll('[role=status], [role=alert]')].length")
    return {"elements": total, "liveRegions": live}


def overflow(page):
    """Returns the elements that extend beyond the width of the page, if the page scrolls horizontally."""
    return page.js("""
        const width = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= width) return [];
        return [...document.querySelectorAll('body *')].filter(each => {
            const { left, right } = each.getBoundingClientRect();
            return right > width + 1 || left < -1;
        }).slice(0, 4).map(each => each.outerHTML.slice(0, 90));""")


def check_narrow(page):
    for view in page.views():
        page.emulate(width=360, height=740)
        page.open(view)
        assert not overflow(page), f"{view}: {overflow(page)}"
    open_dialog(page)
    assert not overflow(page), f"dialog: {overflow(page)}"
    return {"width": 360}


def check_covered(page):
    """Moves through the rows while one is selected. Toolbars must not cover the focused row (WCAG 2.2, 2.4.11)."""
    for width, height in [(1280, 420), (360, 560)]:
        page.emulate(width=width, height=height)
        page.open()
        page.tab_to(".rows [role=row]", Keys.TAB)
        count, positions = len(page.stored()), set()
        for step in [0] + [1] * min(12, count - 1) + [-1] * min(12, count - 1):
            page.press({0: Keys.SPACE, 1: Keys.ARROW_DOWN, -1: Keys.ARROW_UP}[step])
            page.wait(lambda: page.js("return document.querySelector('.selection').checkVisibility()"))
            page.wait(lambda: page.js(UNCOVERED), 2)
            positions.add(page.js("return scrollY"))
        assert len(positions) > 2, "the page does not scroll"
    return {}


def check_focus(page):
    """Visits all elements of each view with Tab. Each must be visible and show the focus. Results must be announced."""
    counts = {}
    for view in page.views():
        page.open(view)
        page.js("window.visited = new Set()")
        for _ in range(100):
            ActionChains(page.driver).send_keys(Keys.TAB).perform()
            element, is_new, is_shown = page.js(FOCUS)
            if not is_new:
                break
            assert is_shown, f"{view}: no visible focus: {element}"
        counts[view[:6]] = page.js("return visited.size")
        assert counts[view[:6]] > 4, f"{view}: Tab reaches {counts[view[:6]]} elements"
    page.open()
    page.tab_to("[type=search]", Keys.TAB)
    page.press("no such name")
    page.wait(lambda: page.text("#live").startswith("0 of "))
    return counts


def check_rtl(page):
    for width in [1280, 360]:
        for view in page.views():
            page.emulate(width=width)
            page.open(view)
            page.js("document.documentElement.dir = 'rtl'")
            time.sleep(0.3)
            assert not overflow(page), f"{view}: {overflow(page)}"
            assert not page.js(SCRAMBLED), f"{view}: {page.js(SCRAMBLED)}"
        page.open()
        page.js("document.documentElement.dir = 'rtl'")
        left, right = page.js("""const row = document.querySelector('.rows [role=row]');
            return ['.cell-name', '.cell-select'].map(each => row.querySelector(each).getBoundingClientRect().left)""")
        assert left < right, "the rows are not mirrored"
    return {}


def check_forced(page):
    """Forces the colors of the system. Bars and legends must stay distinguishable from their background."""
    try:
        for view in [*page.views(), "#/resource/" + next(r["key"] for r in page.stored() if r["kind"] == "file")]:
            page.cdp("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
            page.open(view)
            invisible = page.js("""
                const color = (...each) => getComputedStyle(...each).backgroundColor;
                const shown = text => [...document.querySelectorAll(text)].filter(each => each.checkVisibility());
                return [...shown('.lane .flight, .bar .part').filter(each => color(each) === color(each.parentElement)),
                    ...shown('.legend li').filter(each => color(each, '::before') === color(document.body))]
                    .map(each => each.outerHTML.slice(0, 90));""")
            assert not invisible, f"{view}: {invisible[:4]}"
    finally:
        page.emulate()
    return {}


def check_large(page):
    """Doubles the size of text in the browser's settings. Rows must grow, and nothing may extend beyond the page."""
    page.cdp("Page.enable")
    page.cdp("Page.setFontSizes", fontSizes={"standard": 32})
    try:
        for width in [1280, 640]:
            page.emulate(width=width)
            for view in page.views():
                page.open(view)
                assert not overflow(page), f"{width} px, {view}: {overflow(page)}"
            page.open()
            assert page.js("return getComputedStyle(document.documentElement).fontSize") == "32px"
            clipped = page.js("""return [...document.querySelectorAll('.rows [role=row]')].filter(row => {
                const { top, bottom } = row.getBoundingClientRect();
                return [...row.querySelectorAll('*')].map(each => each.getBoundingClientRect()).some(each =>
                    each.height > 0 && (each.top < top - 1 || each.bottom > bottom + 1)); }).length""")
            assert clipped == 0, f"{width} px: the text of {clipped} rows is cut off"
    finally:
        page.cdp("Page.setFontSizes", fontSizes={"standard": 16})
    return {}


def check_locale(page):
    """Checks that numbers and dates have the format of the browser's locale."""
    formats = """const done = arguments[0];
        import(new URL('format.js', document.baseURI)).then(({ bytes, date, number }) =>
            done([number(1234567), bytes(12345678), date(0)]));"""
    shown = {}
    for locale, expected in [("de-DE", ["1.234.567", "12,3 MB", "01.01.1970"]),
                             ("en-US", ["1,234,567", "12.3 MB", "Jan 1, 1970"])]:
        page.cdp("Emulation.setLocaleOverride", locale=locale)
        page.cdp("Emulation.setTimezoneOverride", timezoneId="UTC")
        page.open()
        shown[locale] = page.driver.execute_async_script(formats)
        texts = [text.replace("\u00a0", " ").replace("\u202f", " ") for text in shown[locale]]
        assert all(text.startswith(each) for text, each in zip(texts, expected)), f"{locale}: {texts}"
    page.cdp("Emulation.setLocaleOverride")
    page.cdp("Emulation.setTimezoneOverride", timezoneId="")
    return shown


def check_motion(page):
    page.emulate(motion="reduce")
    page.open()
    frames = len(page.frames(2))
    animations = page.js("return document.getAnimations().length")
    assert frames <= 24 and animations == 0, f"{frames} frames in 2 s, {animations} animations"
    return {"framesIn2s": frames}


def check_frames(page):
    page.open()
    page.cdp("Performance.enable")
    metrics = lambda: {each["name"]: each["value"] for each in page.cdp("Performance.getMetrics")["metrics"]}
    page.driver.set_window_size(1280, 900)
    before = metrics()
    resting = page.frames(5)
    after = metrics()
    scrolling = page.frames(3, scroll=True)
    durations = resting + scrolling
    assert durations, "no frames were drawn"
    median = statistics.median(durations)
    script = (after["ScriptDuration"] - before["ScriptDuration"]) / max(1, len(resting)) * 1000
    # The durations of frames include the time in which other processes use the processor.
    assert script <= 8, f"the script takes {script} ms per frame"
    task = (after["TaskDuration"] - before["TaskDuration"]) / max(1, len(resting)) * 1000
    return {"resources": page.js("return Number(document.querySelector('[role=grid]').ariaRowCount) - 1"),
            "framesPerSecond": round(len(resting) / 5), "medianMilliseconds": round(median, 2),
            "p95Milliseconds": round(sorted(durations)[int(len(durations) * 0.95)], 2),
            "scriptPerFrameMilliseconds": round(script, 2), "mainThreadPerFrameMilliseconds": round(task, 2)}


def check_paint(page):
    results = []
    for _ in range(3):
        page.cdp("Network.clearBrowserCache")
        page.open()
        results.append(page.js("return performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    assert max(results) <= 1000, results
    return {"milliseconds": [round(each) for each in results]}


def check_memory(page, seconds=600):
    page.open()
    sizes = []
    for _ in range(max(2, seconds // 30) + 1):
        page.cdp("HeapProfiler.collectGarbage")
        sizes.append(round(page.cdp("Runtime.getHeapUsage")["usedSize"] / 1e6, 2))
        time.sleep(30)
    assert sizes[-1] <= sizes[1] * 1.1 + 0.5, sizes
    return {"megabytes": sizes}
