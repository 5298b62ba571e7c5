"""The checks of dashboard.py for the contents of maps and waterfalls, for playback, and for changes by the operator."""
import pathlib
import tempfile
import time
import urllib.parse
import urllib.request

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

# For each column of a map's pixels, whether its color is the one of stored bytes.
COLUMNS = """
const canvas = arguments[0], probe = new OffscreenCanvas(1, 1).getContext('2d');
probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--map-stored').trim();
probe.fillRect(0, 0, 1, 1);
const stored = probe.getImageData(0, 0, 1, 1).data;
const { data } = canvas.getContext('2d').getImageData(0, arguments[1], canvas.width, 1);
return Array.from({ length: canvas.width }, (_, x) => [0, 1, 2].every(each => data[x * 4 + each] === stored[each]));
"""
# The center of the playhead, which extends above the map, or null.
PLAYHEAD_CENTER = """
const canvas = document.querySelector('.large-map'), list = [];
const { data } = canvas.getContext('2d').getImageData(0, 3, canvas.width, 1);
for (let x = 0; x < canvas.width; x += 1) if (data[x * 4 + 3] > 128) list.push(x);
return list.length === 0 ? null : (list[0] + list.at(-1) + 1) / 2;
"""


def address(page, path):
    """Returns the URL of a path that is relative to the page."""
    return urllib.parse.urljoin(page.base, path)


def details(page, key):
    return page.js("return fetch(`api/resources/${arguments[0]}`).then(response => response.json())", key)


def named(page, ending):
    return next(r for r in page.stored() if r["url"].endswith(ending))


def select(page, key):
    page.js("document.querySelector(`[data-key='${arguments[0]}'] [type=checkbox]`).click()", key)


def click(page, container, label):
    """Clicks the button with the given label in a container."""
    buttons = page.driver.find_elements("css selector", f"{container} button, {container} a.button")
    next(each for each in buttons if each.text == label).click()


def dialog_title(page):
    return page.js("return document.querySelector('dialog[open] h2')?.innerText ?? ''")


def wrong_columns(columns, ranges, length):
    """Returns the columns whose color differs from the stored ranges. The edges of ranges can be in either color."""
    wrong = []
    for x, is_stored in enumerate(columns):
        start, end = (x - 1) * length / len(columns), (x + 2) * length / len(columns)
        covers = any(a <= max(0, start) and min(length, end) <= b for a, b in ranges)
        overlaps = any(a < end and start < b for a, b in ranges)
        if covers and not is_stored or is_stored and not overlaps:
            wrong.append(x)
    return wrong


def check_maps(page):
    """Compares the pixels of maps with the stored ranges."""
    page.open()
    partial, compared = set(), 0
    for resource in page.stored():
        canvas = page.js("return document.querySelector(`[data-key='${arguments[0]}'] canvas`)", resource["key"])
        if canvas is None or resource["kind"] != "file" or not resource["length"]:
            continue
        columns = page.js(COLUMNS, canvas, 16)
        wrong = wrong_columns(columns, resource["ranges"], resource["length"])
        assert not wrong, f"{resource['url']}: the columns {wrong[:5]} differ from {resource['ranges']}"
        compared += 1
        if not resource["complete"]:
            partial.add(resource["key"])
            assert any(columns) and not all(columns), resource
    assert partial, "no resource is stored in part"
    for key in partial:
        page.open(f"#/resource/{key}")
        resource = details(page, key)
        page.wait(lambda: any(page.js(COLUMNS, page.driver.find_element("css selector", ".large-map"), 60)))
        columns = page.js(COLUMNS, page.driver.find_element("css selector", ".large-map"), 60)
        # The playhead is at the first byte, and covers some columns.
        wrong = [x for x in wrong_columns(columns, resource["ranges"], resource["length"]) if x > 8]
        assert not wrong, f"{resource['url']}: the columns {wrong[:5]} differ from {resource['ranges']}"
    return {"maps": compared, "partial": len(partial)}


def check_waterfall(page):
    """Compares the table of requests with the API: the rows, their order, and the positions of the bars."""
    page.open()
    key = named(page, "/retried.mp4")["key"]
    page.open(f"#/resource/{key}")
    requests = details(page, key)["requests"][::-1]
    rows = page.wait(lambda: page.js("""return [...document.querySelectorAll('.waterfall tbody tr')].map(row => {
        const lane = row.querySelector('.lane').getBoundingClientRect();
        const bar = row.querySelector('.flight').getBoundingClientRect();
        return { cells: [...row.cells].map(cell => cell.innerText), outcome: row.querySelector('.flight').className,
            start: (bar.left - lane.left) / lane.width, end: (bar.right - lane.left) / lane.width };
    })"""))
    assert len(rows) == len(requests) > 1, f"{len(rows)} rows for {len(requests)} requests"
    for row, request in zip(rows, requests):
        end = "" if request["end"] is None else f"{request['end'] - 1:,}"
        assert row["cells"][1] == f"{request['start']:,}–{end}", row
        assert row["cells"][2] == str(request["status"] or "–"), row
        assert row["outcome"].endswith(request["outcome"]) and request["outcome"] in row["cells"][-1], row
        assert not request["message"] or request["message"][1:] in row["cells"][-1], row
        assert 0 <= row["start"] < row["end"] <= 1.01, row
    starts = [row["start"] for row in rows]
    assert starts == sorted(starts) and starts[0] == 0 and max(row["end"] for row in rows) > 0.99, starts
    assert {"failed", "complete"} <= {request["outcome"] for request in requests}, requests
    return {"requests": len(requests)}


def check_playhead(page):
    """Plays a video. The playhead must follow it, and a click on the map must seek."""
    page.open()
    page.open("#/resource/" + named(page, "/talk.mp4")["key"])
    state = "const { currentTime, duration } = document.querySelector('video'); return [currentTime, duration]"
    width = page.js("return document.querySelector('.large-map').width")

    def distance():
        time.sleep(0.2)
        now, duration = page.js(state)
        center = page.js(PLAYHEAD_CENTER)
        return None if center is None else abs(center - max(5, now / duration * width))

    page.js("const media = document.querySelector('video'); media.muted = true; media.play()")
    page.wait(lambda: page.js(state)[0] > 1)
    first = page.js(PLAYHEAD_CENTER)
    page.wait(lambda: page.js(PLAYHEAD_CENTER) > first + 5)
    page.js("document.querySelector('video').pause()")
    assert distance() <= 3, f"the playhead is {distance()} px from the position of playback"
    canvas = page.driver.find_element("css selector", ".large-map")
    ActionChains(page.driver).move_to_element_with_offset(canvas, width // 4, 0).click().perform()
    now, duration = page.js(state)
    assert abs(now / duration - 0.75) < 0.02, f"a click at 75% seeks to {now} of {duration} seconds"
    page.wait(lambda: distance() <= 3)
    return {"seeked": round(now, 2)}


def check_download(page):
    """Saves complete files from the list and from a resource's view, and compares their bytes with the media."""
    page.open()
    talk, sound, stream = (named(page, each) for each in ["/talk.mp4", "/sound.mp3", ".m3u8"])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        page.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=name)

        def saved(resource):
            with urllib.request.urlopen(address(page, details(page, resource["key"])["mediaURL"])) as response:
                media = response.read()
            file = folder / resource["url"].rsplit("/", 1)[1]
            page.wait(lambda: file.exists() and file.read_bytes() == media)
            file.unlink()
            return len(media)

        for resource in [talk, sound, stream]:
            select(page, resource["key"])
        click(page, ".selection", "Download")
        page.wait(lambda: "1 resource can’t be downloaded" in page.text("#toasts"))
        sizes = [saved(talk), saved(sound)]
        page.open("#/resource/" + talk["key"])
        click(page, ".resource-head", "Download")
        saved(talk)
        page.cdp("Browser.setDownloadBehavior", behavior="default")
        assert not list(folder.iterdir()), list(folder.iterdir())
    return {"bytes": sizes}


def check_preload(page):
    """Preloads the incomplete resources of a selection. Complete files are omitted."""
    page.open(with_token=True)
    part, talk, stream = (named(page, each) for each in ["/part.mp4", "/talk.mp4", ".m3u8"])
    select(page, talk["key"])
    click(page, ".selection", "Preload …")
    page.wait(lambda: "are complete" in page.text("#toasts"))
    assert not dialog_title(page)
    for resource in [part, stream]:
        select(page, resource["key"])
    click(page, ".selection", "Preload …")
    page.wait(lambda: dialog_title(page) == "Preload media")
    urls, pins = page.js("""return [document.querySelector('dialog textarea').value.split('\\n'),
        document.querySelector('dialog [type=checkbox]').checked]""")
    assert sorted(urls) == sorted([part["url"], stream["url"]]) and not pins, (urls, pins)
    click(page, "dialog", "Preload")
    page.wait(lambda: "2 preloads started" in page.text("#toasts"))
    page.wait(lambda: named(page, "/part.mp4")["complete"])
    assert not named(page, "/part.mp4")["pinned"]
    return {"preloaded": len(urls)}


def check_unpin(page):
    """Pins two resources, and unpins them in the list and in a resource's view."""
    page.open(with_token=True)
    keys = [named(page, each)["key"] for each in ["/sound.mp3", "/retried.mp4"]]
    pinned = lambda: [r["key"] for r in page.stored() if r["pinned"] and r["key"] in keys]
    pressed = "return document.querySelector(`[data-key='${arguments[0]}'] .pin`).ariaPressed"
    for key in keys:
        select(page, key)
    click(page, ".selection", "Pin")
    page.wait(lambda: len(pinned()) == 2)
    page.wait(lambda: all(page.js(pressed, key) == "true" for key in keys))
    page.wait(lambda: "Pinned 2 resources" in page.text("#toasts"))
    click(page, ".selection", "Unpin")
    page.wait(lambda: not pinned())
    page.wait(lambda: all(page.js(pressed, key) == "false" for key in keys))
    page.js("location.hash = `#/resource/${arguments[0]}`", keys[0])
    page.wait(lambda: "Requests to the origin" in page.text())
    click(page, ".resource-head", "Pin")
    page.wait(lambda: pinned() == keys[:1] and "pinned" in page.text(".resource-head"))
    click(page, ".resource-head", "Unpin")
    page.wait(lambda: not pinned() and "pinned" not in page.text(".resource-head"))
    assert not dialog_title(page), "unpinning asks for confirmation, although the capacity is unlimited"
    return {}


def check_capacity(page):
    """Changes the capacity. A change that evicts media, and unpinning media that does not fit, must be confirmed."""
    page.open("#/settings", with_token=True)
    capacity = lambda: page.js("return fetch('api/status').then(response => response.json())")["capacityBytes"]

    def enter(text):
        page.wait(lambda: page.js("return document.getElementById('setting-capacity') !== null"))
        field = page.driver.find_element("id", "setting-capacity")
        field.send_keys(Keys.CONTROL, "a", Keys.DELETE)
        field.send_keys(text, Keys.ENTER)

    before = capacity()
    enter("much")
    page.wait(lambda: page.js("return document.getElementById('setting-capacity').validationMessage !== ''"))
    assert capacity() == before
    enter("1.5 TB")
    page.wait(lambda: capacity() == 1_500_000_000_000)
    page.wait(lambda: "changed on this page" in page.text("#view-settings")
              and page.js("return document.getElementById('setting-capacity').value") == "1.5 TB")
    pinned = next(r for r in page.stored() if r["pinned"])
    stored = page.stored()
    smaller = f"{pinned['storedBytes'] // 2000} kB"
    enter(smaller)
    page.wait(lambda: dialog_title(page) == "Change capacity?")
    assert "will evict at least" in page.text("dialog") and "Pinned media is not evicted" in page.text("dialog")
    page.press(Keys.ENTER)  # The focus is on the button that cancels.
    page.wait(lambda: not dialog_title(page))
    time.sleep(0.5)
    assert capacity() == 1_500_000_000_000 and len(page.stored()) == len(stored)
    enter(smaller)
    page.wait(lambda: dialog_title(page) == "Change capacity?")
    click(page, "dialog", "Change")
    page.wait(lambda: len(page.stored()) < len(stored))
    assert any(r["key"] == pinned["key"] for r in page.stored())

    page.open()
    page.wait(lambda: len(page.rows()) > 0)
    select(page, pinned["key"])
    for answer, is_pinned in [("Cancel", True), ("Unpin", False)]:
        click(page, ".selection", "Unpin")
        page.wait(lambda: dialog_title(page) == "Unpin 1 resource?")
        click(page, "dialog", answer)
        page.wait(lambda: not dialog_title(page))
        page.wait(lambda: any(r["pinned"] for r in page.stored()) == is_pinned)
    page.open("#/settings")
    enter("")
    page.wait(lambda: capacity() is None)
    return {"capacity": smaller, "evicted": len(stored) - len(page.stored())}


def check_menus(page):
    """Filters by each type and each host, and opens the list from the view of the current activity."""
    page.open()
    stored = page.stored()
    kind = lambda r: (r["contentType"] or "unknown").split("/")[0].title() if r["kind"] == "file" else r["kind"].upper()
    types = {r["key"]: kind(r) for r in stored}
    hosts = {r["key"]: r["url"].split("/")[2] for r in stored}
    counts = {}
    for label, groups in [("Type", types), ("Host", hosts)]:
        menu = Select(page.driver.find_element("css selector", f"select[aria-label={label}]"))
        values = [each.get_attribute("value") for each in menu.options]
        assert sorted(values) == sorted({"", *groups.values()}), f"{label}: {values}"
        assert len(values) > 2, f"{label}: {values}"
        counts[label] = len(values) - 1
        for value in values[1:]:
            expected = [key for key, group in groups.items() if group == value]
            menu.select_by_value(value)
            assert menu.first_selected_option.text == f"{value} ({len(expected)})", menu.first_selected_option.text
            page.wait(lambda: page.text(".count") == f"{len(expected)} of {len(stored)} resources")
            shown = "return [...document.querySelectorAll('.rows [role=row]')].map(row => row.dataset.key)"
            page.wait(lambda: set(page.js(shown)) <= set(expected) and page.js(shown))
        menu.select_by_value("")
        page.wait(lambda: page.text(".count") == f"{len(stored)} resources")
    page.driver.find_element("link text", "Now").click()
    link = page.wait(lambda: page.js("return document.querySelector('.shares a')"))
    host = link.text
    link.click()
    page.wait(lambda: page.text(".count").startswith(f"{list(hosts.values()).count(host)} of "))
    assert page.js("return document.querySelector('select[aria-label=Host]').value") == host
    return counts
