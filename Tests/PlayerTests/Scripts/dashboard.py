#!/usr/bin/env python3
"""Checks the live page of a server in Chromium, and prints the results as one line of JSON.

usage: dashboard.py URL TOKEN [CHECK…] [--screenshots DIR] [--preload URL] [--seconds N]

URL is the address of the page, such as http://127.0.0.1:8787/.spool/, and TOKEN the operator's token. Without names of
checks, it runs all except `memory` and `capacity`. The exit status is 1 if a check fails. The cache needs at least four
resources, one of them a video of a known length. The check `paths` requires a wait for each cause, and `frames` is
useful with 1,000 resources. The checks `dialogs` and `paths` change the cache. The check `silence` requests missing
media at the host of `--preload`. The checks of dashboard_contents.py require the media of LivePageTests.swift.
"""
import argparse
import contextlib
import json
import re
import socket
import sys
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

from selenium.webdriver.common.keys import Keys

import dashboard_contents
import dashboard_measures
from dashboard_browser import LOW_CONTRAST, Page

# The number of maps that are not empty.
PAINTED = """return [...document.querySelectorAll('.rows canvas')].filter(canvas => canvas.width > 0 &&
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(value => value > 0)).length"""
# Whether the map of a resource shows the playhead, which extends above the map.
PLAYHEAD = """const map = document.querySelector('.large-map');
    return map.getContext('2d').getImageData(0, 3, map.width, 1).data.some(value => value > 0)"""
# Whether a view is shown.
SHOWN = "return !document.querySelector(arguments[0]).hidden"


def name(resource):
    return urllib.parse.unquote(resource["url"].rsplit("/", 1)[1])


def check_library(page):
    page.open()
    stored = page.js("return fetch('api/resources').then(response => response.json())")
    heads = page.js("return [...document.querySelectorAll('[role=columnheader] button')].map(each => each.innerText)")
    assert heads == ["Name", "Type", "Bytes", "Stored", "Size", "Last used", "Pin"], heads
    rows, first = page.rows(), stored["resources"][0]
    assert f"{stored['count']:,} resource" in page.text(".count"), page.text(".count")
    assert first["url"].split("/")[2] in "".join(rows)
    assert len(rows) <= 40, f"{len(rows)} rows exist"
    shown = page.driver.execute_async_script("""const done = arguments[0];
        import(new URL('format.js', document.baseURI)).then(({ names }) =>
            done(names('http://a.example/x%E2%80%AEfdp.exe%E2%81%A9%0A.mp4').name))""")
    assert shown == "xfdp.exe.mp4", f"the name can change the direction of text: {ascii(shown)}"
    painted = page.js(PAINTED)
    assert painted == len(rows), f"{painted} maps of {len(rows)} rows are drawn"
    return {"resources": stored["count"], "rows": len(rows)}


def check_filters(page):
    page.open()
    stored = page.stored()
    search = page.driver.find_element("css selector", "[type=search]")
    part = name(stored[-1])[:12].lower()
    search.send_keys(part)
    expected = sum(part in urllib.parse.unquote(r["url"]).lower() for r in stored)
    page.wait(lambda: page.js("return Number(document.querySelector('[role=grid]').ariaRowCount)") == expected + 1)
    search.send_keys(Keys.CONTROL, "a", Keys.DELETE)
    assert not page.js("return document.querySelector('.rows img, .rows script')"), "a name is not inserted as text"
    for state, matches in {"pinned": lambda r: r["pinned"], "complete": lambda r: r["complete"]}.items():
        page.js("""const menu = document.querySelector('select[aria-label=State]'); menu.value = arguments[0];
            menu.dispatchEvent(new Event('change'))""", state)
        count = sum(map(matches, stored))
        page.wait(lambda: page.text(".count").startswith(f"{count:,} of ") or count == len(stored) or
                  count == 0 and "No resource matches" in page.text())
    page.js("document.querySelector('select[aria-label=State]').value = 'all'; document.querySelector("
            "'select[aria-label=State]').dispatchEvent(new Event('change'))")
    page.driver.find_element("css selector", "[data-column=stored] button").click()
    page.wait(lambda: name(max(page.stored(), key=lambda r: r["storedBytes"])) in page.rows()[0])
    assert page.js("return document.querySelector('[data-column=stored]').ariaSort") is not None
    return {"searched": part, "matches": expected}


def check_keyboard(page):
    """Searches, moves, selects, opens and returns, with keys only."""
    page.open()
    page.press(Keys.TAB)
    assert page.active("return document.activeElement.id") == "skip"
    page.tab_to("[type=search]", Keys.TAB)
    page.tab_to(".rows [role=row]", Keys.TAB)
    first = page.active("return document.activeElement.dataset.key")
    page.press(Keys.ARROW_DOWN, Keys.SPACE)
    second = page.active("return document.activeElement.dataset.key")
    assert first != second
    page.wait(lambda: page.active("return document.activeElement.ariaSelected") == "true")
    page.js("scrollTo(0, 0)")
    page.press(Keys.END)
    last = page.active("return Number(document.activeElement.ariaRowIndex)")
    assert last == page.js("return Number(document.querySelector('[role=grid]').ariaRowCount)"), last
    box = page.js("const { top, bottom } = document.activeElement.getBoundingClientRect();"
                  "return [top, bottom, innerHeight]")
    assert box[0] >= 0 and box[1] <= box[2] + 1, f"the row with the focus is not visible: {box}"
    page.press(Keys.HOME, Keys.ESCAPE)
    page.wait(lambda: page.js("return document.querySelector('.selection').hidden"))
    page.press(Keys.ENTER)
    page.wait(lambda: page.js(SHOWN, "#view-resource"))
    invisible = []
    for _ in range(12):
        page.press(Keys.TAB)
        if not page.js("""const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
                return document.activeElement.matches('video, audio, body') || outlineStyle !== 'none' &&
                parseFloat(outlineWidth) >= 2"""):
            invisible.append(page.active())
    assert not invisible, f"no visible focus: {invisible}"
    return {"rows": last - 1}


def check_dialogs(page):
    """Enters the token; pins, verifies and removes a resource with keys only. A closed dialog must return focus."""
    page.driver.get(page.base)
    page.js("sessionStorage.clear()")
    page.open()
    page.wait(lambda: page.rows())
    page.tab_to(".rows [role=row]", Keys.TAB)
    page.press(Keys.END)
    key = page.active("return document.activeElement.dataset.key")
    status = "return fetch(`api/resources/${arguments[0]}`).then(({ status }) => status)"
    pressed = "return document.querySelector(`[data-key='${arguments[0]}'] .pin`).ariaPressed"
    title = "return document.querySelector('dialog[open] h2')?.innerText ?? ''"
    page.press(Keys.DELETE)
    page.wait(lambda: page.js(title) == "Operator’s token")
    page.press("wrong", Keys.ENTER)
    page.wait(lambda: "rejected" in page.text("dialog"))
    page.press(page.token, Keys.ENTER)
    page.wait(lambda: page.js(title).startswith("Remove 1"))
    assert page.active("return document.activeElement.innerText") == "Cancel"
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.js("return document.querySelector('dialog')"))
    assert page.active("return document.activeElement.dataset.key") == key, "the focus did not return"
    assert page.js(status, key) == 200
    before = page.js(pressed, key)
    page.press("p")
    page.wait(lambda: page.js(pressed, key) != before)
    page.press(Keys.SPACE)
    page.tab_to(".selection button:nth-of-type(3)", Keys.TAB)
    page.press(Keys.ENTER)
    page.wait(lambda: "Verified" in page.text("#toasts"))
    page.js("document.querySelector(`[data-key='${arguments[0]}']`).focus()", key)
    page.press(Keys.DELETE)
    page.wait(lambda: page.js(title).startswith("Remove 1"))
    page.tab_to("dialog [type=submit]", Keys.TAB)
    page.press(Keys.ENTER)
    page.wait(lambda: page.js(status, key) == 404)
    page.wait(lambda: page.active("return document.activeElement.getAttribute('role')") == "row")
    assert "Removed" in page.text("#toasts")
    page.js("document.querySelector('.toolbar .end button:last-child').focus()")
    page.press(Keys.ENTER)
    page.wait(lambda: page.js(title) == "Purge")
    page.press(page.stored()[0]["url"])
    page.wait(lambda: "1 listed resource" in page.text("dialog [role=status]"))
    # The server determines what would be removed. Nothing is removed without the second confirmation.
    page.press(Keys.ENTER)
    page.wait(lambda: page.js(title) == "Remove the matching resources?")
    assert "will be removed" in page.text("dialog") and " file" in page.text("dialog")
    page.press(Keys.ESCAPE)
    return {"removed": key}


def check_resource(page):
    page.open()
    page.open(page.resource_view())
    page.wait(lambda: "Requests to the origin" in page.text())
    for text in ["Validator", "Freshness", "Stored headers", "Why did playback wait?", "Playback"]:
        assert text in page.text(), f"“{text}” is missing"
    label = page.js("return document.querySelector('.large-map').ariaLabel")
    assert label.startswith("Map of the bytes"), label
    media = page.js("return document.querySelector('video, audio')?.getAttribute('src') ?? null")
    position = None
    if media:
        page.driver.set_script_timeout(15)
        position = page.driver.execute_async_script("""
            const done = arguments[0], media = document.querySelector('video');
            media.muted = true; media.addEventListener('error', () => done(-1));
            media.addEventListener('timeupdate', () => media.currentTime > 0.5 && done(media.currentTime));
            media.play();""")
        assert position > 0.5, "the media does not play"
        page.js("document.querySelector('video').pause()")
    page.open(page.resource_view(is_stream=True))
    files = page.wait(lambda: page.js("return document.querySelectorAll('.files tbody tr').length"))
    if page.js("return document.querySelector('video') !== null"):  # The browser supports the type of the stream.
        page.js("const media = document.querySelector('video'); media.muted = true; media.play()")
        page.wait(lambda: page.js("return document.querySelector('video').currentTime > 0.5"))
        time.sleep(2)  # Playback changes the resource, so the view loads it again.
        assert page.js(PLAYHEAD), "the map of the stream does not show the playhead"
    page.open()
    page.js("""const original = fetch;
        window.fetch = async (path, options) => {
            const response = await original(path, options);
            return !/resources\/[^/]+$/.test(path) ? response
                : Response.json({ ...await response.json(), mediaURL: null });
        };
        location.hash = arguments[0]""", page.resource_view())
    page.wait(lambda: "or the page has a separate address" in page.text(".player"))
    page.open("#/resource/00")
    page.wait(lambda: "not stored" in page.text())
    return {"played": position, "files": files}


def check_now(page):
    page.open("#/now")
    page.wait(lambda: "in the last hour" in page.text())
    # The numbers are shown even if no update follows.
    page.wait(lambda: page.js("return [...document.querySelectorAll('#view-now .figure .value')].every("
                              "value => value.textContent !== '')"), 3)
    text = page.text()
    for each in ["From the cache", "From origins", "Hit ratio", "Saved today (UTC)", "Saved since the server started",
                 "Readers", "Errors", "Slow playback", "Stored bytes by host", "Stored bytes by type",
                 "Requests in progress"]:
        assert each in text, f"“{each}” is missing"
    groups = page.driver.execute_async_script("""const done = arguments[0];
        import(new URL('requests.js', document.baseURI)).then(({ groupedWaits }) => done(groupedWaits([
            ...Array.from({ length: 30 }, (_, index) => ({ key: String(index % 15), cause: 'slowOrigin' })),
            { key: '0', cause: 'retry' }]).map(({ key, cause, count }) => [key, cause, count])));""")
    assert groups == [[str(key), "slowOrigin", 2] for key in range(7)] + [["0", "retry", 1]], groups
    shown = page.driver.execute_async_script("""const done = arguments[0];
        import(new URL('requests.js', document.baseURI)).then(({ waits }) => done(['slowOrigin', 'other'].map(cause =>
            [...waits([{ cause, message: 'a player waited', time: '2026-01-01T00:00:00Z' }], {}).querySelectorAll(
                '.tag, p:not(.line)')].map(each => each.textContent))));""")
    assert "The origin or the network was slow, or the request had to wait" in shown[0][-1], shown
    assert shown[1] == ["Unknown cause", "A player waited"], shown
    has_errors = page.js("return fetch('api/status').then(response => response.json())")["errors"] > 0
    assert not has_errors or "No errors" not in page.text("#view-now"), page.text("#view-now")
    chart = page.driver.find_element("css selector", "canvas.chart")
    summary = page.text(".chart-value")
    chart.send_keys(Keys.ARROW_LEFT)
    page.wait(lambda: page.text(".chart-value") != summary)
    links = page.js("return [...document.querySelectorAll('a[href^=\"#/errors/\"]')].length")
    if links:
        page.js("document.querySelector('a[href^=\"#/errors/\"]').click()")
        page.wait(lambda: page.js(SHOWN, "#view-errors"))
        page.wait(lambda: page.active("return document.activeElement.id.startsWith('error-')"))
    page.open()
    page.js("""const original = fetch, sample = { time: '2026-01-01T00:00:00Z', requests: 1, hits: 1, errors: 1,
            servedBytes: 0, savedBytes: 0, originBytes: 0 };
        window.fetch = (path, options) => path !== 'api/history' ? original(path, options)
            : Promise.resolve(Response.json({ intervalSeconds: 10, samples: [sample] }));
        location.hash = '#/now'""")
    page.wait(lambda: "1 hit in 1 request, 1 error in the last hour" in page.text("#view-now"))
    return {"summary": summary, "linksToErrors": links}


def check_settings(page):
    page.open("#/settings")
    settings = page.js("return fetch('api/settings').then(response => response.json())")["settings"]
    fixed = [s["name"] for s in settings if s["source"] == "commandLine"]
    assert page.text().count("set on the command line") == len(fixed)
    page.wait(lambda: page.js("return document.querySelectorAll('.setting').length") == len(settings))
    texts = page.js("return [...document.querySelectorAll('.setting')].map(each => each.innerText)")
    for setting, text in zip(settings, texts):
        if not setting["editable"]:
            assert "restart the server" in text and setting["option"] in text, text
            assert all(choice in text for choice in setting["choices"] or []), text
            assert not re.search(r"\d{4}", text), f"a number without a unit: {text}"
        assert ("The command line sets it" in text) == (setting["source"] == "commandLine"), text
    page.driver.find_element("id", "token").send_keys("wrong", Keys.ENTER)
    page.wait(lambda: "rejected" in page.text())
    page.driver.find_element("id", "token").send_keys(Keys.CONTROL, "a", Keys.DELETE)
    page.driver.find_element("id", "token").send_keys(page.token, Keys.ENTER)
    page.wait(lambda: "This tab has a token" in page.text())
    if any(s["name"] == "allowedHosts" and s["editable"] for s in settings):
        for text, expected in [("media.example, *.cdn.example", ["media.example", "*.cdn.example"]), ("", [])]:
            page.wait(lambda: page.js("return document.getElementById('setting-allowedHosts') !== null"))
            page.js("""const input = document.getElementById('setting-allowedHosts'); input.value = arguments[0];
                input.form.requestSubmit()""", text)
            page.wait(lambda: next(s["value"] for s in page.js("return fetch('api/settings').then(response => "
                      "response.json())")["settings"] if s["name"] == "allowedHosts") == expected)
    return {"settings": len(settings), "commandLine": fixed}


def check_token(page):
    """Checks that the token is neither in the address bar nor in a cookie or the local storage."""
    page.open(with_token=True)
    state = page.js("return [location.href, document.cookie, localStorage.length, Object.values(sessionStorage)]")
    assert page.token not in state[0], state[0]
    history = page.cdp("Page.getNavigationHistory")["entries"]
    assert not any(page.token in entry["url"] for entry in history), history
    assert state[1] == "" and state[2] == 0 and state[3] == [page.token], state
    assert page.cdp("Network.getCookies")["cookies"] == []
    return {}


def events(page):
    """Returns the requests for events, with their headers."""
    return [head for head in page.relay.requested if "/api/events" in head.split("\r\n")[0]]


def check_links(page):
    """Opens links with invalid fragments."""
    for fragment in ["#/%zz", "#token=%zz", "#/constructor", "#/resource/%zz", "#/errors/%zz", "#/?%zz"]:
        page.driver.get("about:blank")
        page.driver.get(page.base + fragment)
        page.wait(lambda: page.text("#connection") == "Live")
        assert "token" not in page.js("return location.hash"), fragment
        assert page.js("return [...document.querySelectorAll('[id^=view-]')].some(each => !each.hidden)"), fragment
    return {}


def check_loss(page):
    """Interrupts the connection, and restores it. The page must resume after the last event, and load the settings."""
    page.open()
    time.sleep(1)
    page.relay.cut()
    page.wait(lambda: "does not respond" in page.text("#banner"), 15)
    assert page.js("return document.querySelector('#banner').getAttribute('role')") == "alert"
    page.driver.find_element("link text", "Settings").click()
    page.wait(lambda: "does not respond" in page.text("#view-settings"))
    page.relay.requested.clear()
    time.sleep(2)
    start = time.time()
    page.relay.restore()
    page.wait(lambda: page.js("return document.querySelector('#connection').dataset.state") == "live", 15)
    assert page.text("#banner") == ""
    page.wait(lambda: "again" in page.js("return document.querySelector('#live').textContent"))
    page.wait(lambda: "Capacity" in page.text("#view-settings"))
    last = re.search(r"last-event-id: *[a-z0-9]+-(\d+)", events(page)[-1], re.IGNORECASE)[1]
    assert int(last) > 0, "the page does not resume"
    return {"seconds": round(time.time() - start, 1), "lastEventID": int(last)}


def check_limit(page):
    """Opens more event streams than the server allows. The page must show the cause, and reconnect later."""
    page.open()
    path = urllib.parse.urlsplit(page.base).path
    with contextlib.ExitStack() as streams:
        for _ in range(64):
            stream = streams.enter_context(socket.create_connection(page.relay.target))
            stream.sendall(f"GET {path}api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert stream.recv(12) == b"HTTP/1.1 200"
        page.wait(lambda: "Too many pages are open" in page.text("#banner"))
        assert "reconnects automatically" in page.text("#banner") and page.text("#connection") == "No connection"
        for scheme in ["light", "dark"]:
            page.emulate(360, 740, scheme)
            assert not page.js(LOW_CONTRAST)["found"] and not dashboard_measures.overflow(page), scheme
    start = time.time()
    page.wait(lambda: page.js("return document.querySelector('#connection').dataset.state") == "live", 30)
    assert page.text("#banner") == "" and not page.js("return document.querySelector('#banner').checkVisibility()")
    return {"seconds": round(time.time() - start, 1)}


def check_silence(page, preload="https://media.example/trip/video.mp4"):
    """Stops reading until the server closes the connection. The page must show this, and catch up later."""
    page.open()
    parts, (host, port) = urllib.parse.urlsplit(preload), page.relay.target
    prefix = urllib.parse.urlsplit(page.base).path.removesuffix(".spool/")
    page.relay.holds, start, count = True, time.time(), 0
    # Each failed request adds several entries with its URL to the log. The buffers of both sockets have to be full.
    while count < 1500 or time.time() - start < 5:
        count += 1
        url = f"http://{host}:{port}{prefix}{parts.scheme}/{parts.netloc}/missing-{count}-{'x' * 6000}"
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(url)
    page.relay.holds = False
    page.wait(lambda: "does not respond" in page.text("#banner"), 20)
    page.wait(lambda: page.js("return document.querySelector('#connection').dataset.state") == "live", 20)
    newest = """const done = arguments[0]; import(new URL('store.js', document.baseURI)).then(({ store }) =>
        done(store.log.at(-1)?.url ?? ''))"""
    page.wait(lambda: f"/missing-{count}-" in page.driver.execute_async_script(newest))
    return {"requests": count, "seconds": round(time.time() - start, 1)}


def check_sharing(page):
    """Checks that pages of a browser share one connection, even without shared workers. A hidden page must not draw."""
    counts, first = {}, page.driver.current_window_handle
    for name, script in [("sharedWorker", ""), ("broadcastChannel", "delete globalThis.SharedWorker")]:
        handles = []
        page.driver.get("about:blank")
        time.sleep(0.3)
        page.relay.requested.clear()
        for _ in range(3):
            page.driver.switch_to.new_window("tab")
            page.cdp("Page.addScriptToEvaluateOnNewDocument", source=script)
            page.open("#/now")
            handles.append(page.driver.current_window_handle)
        counts[name] = len(events(page))
        if name == "broadcastChannel":  # Another page continues if the page with the connection is closed.
            page.driver.switch_to.window(handles.pop(0))
            page.driver.close()
            page.driver.switch_to.window(handles[0])
            page.wait(lambda: len(events(page)) == counts[name] + 1)
            page.wait(lambda: page.js("return document.querySelector('#connection').dataset.state") == "live")
        for handle in handles:
            page.driver.switch_to.window(handle)
            page.driver.close()
        page.driver.switch_to.window(first)
    page.open()
    page.js("Object.defineProperty(document, 'hidden', { get: () => true });"
            "document.dispatchEvent(new Event('visibilitychange'))")
    hidden = len(page.frames(1))
    assert set(counts.values()) == {1} and hidden <= 1, f"{counts} connections, {hidden} frames while hidden"
    return {"connections": counts, "framesWhileHidden": hidden}


def check_paths(page, preload="https://media.example/trip/video.mp4"):
    """Checks the four paths of a new user: cached media, savings, slow playback, and media for a trip."""
    page.open(with_token=True)
    assert page.rows() and "Stored" in page.text(".figures")
    saved = page.js("return document.querySelectorAll('.figure .value')[1].innerText")
    assert "Saved by the cache" in page.text(".figures") and saved[0].isdigit(), saved
    page.driver.find_element("link text", "Now").click()
    causes = ["Slow response", "Retry after an error", "Evicted"]
    missing = lambda: [cause for cause in causes if cause not in page.text("#view-now")]
    with contextlib.suppress(AssertionError):
        page.wait(lambda: not missing())
    assert not missing(), f"waits without {missing()}: {page.text('#view-now .waits')}"
    sentence = page.text("#view-now .waits li p:nth-child(2)")
    page.driver.find_element("css selector", "#view-now .waits a").click()
    page.wait(lambda: sentence in page.text("#view-resource"))
    page.driver.find_element("link text", "Library").click()
    page.tab_to(".toolbar .primary", Keys.TAB)
    page.press(Keys.ENTER)
    page.wait(lambda: page.js("return document.querySelector('dialog')?.open"))
    page.press(preload)
    assert page.js("return document.querySelector('dialog [type=checkbox]').checked")
    page.tab_to("dialog [type=submit]", Keys.TAB)
    page.press(Keys.ENTER)
    page.wait(lambda: any(r["url"] == preload and r["pinned"] for r in page.stored()))
    return {"saved": saved, "slow": sentence}


def screenshots(page, folder):
    """Writes screenshots of all views in light mode, in dark mode, and on a phone."""
    page.cdp("Emulation.setScrollbarsHidden", hidden=True)
    for name, width, height, scheme in [("light", 1280, 860, "light"), ("dark", 1280, 860, "dark"),
                                        ("phone", 360, 740, "light"), ("phone-dark", 360, 740, "dark")]:
        for label, view in zip(["library", "now", "settings", "errors", "resource", "stream"], page.views()):
            page.emulate(width, height, scheme)
            page.open(view)
            time.sleep(0.6)
            page.driver.save_screenshot(f"{folder}/{label}-{name}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("checks", nargs="*")
    parser.add_argument("--screenshots")
    parser.add_argument("--preload", default="https://media.example/trip/video.mp4")
    parser.add_argument("--seconds", type=int, default=600)
    arguments = parser.parse_args()
    functions = {**vars(dashboard_contents), **globals(), **vars(dashboard_measures)}
    checks = {name.removeprefix("check_"): check for name, check in functions.items() if name.startswith("check_")}
    chosen = arguments.checks or [name for name in checks if name not in {"memory", "capacity"}]
    extra = {"paths": [arguments.preload], "silence": [arguments.preload], "memory": [arguments.seconds]}
    results, page = {}, Page(arguments.url, arguments.token)
    try:
        for name in chosen:
            page.emulate()
            page.driver.get_log("browser")
            try:
                results[name] = {"ok": True, **checks[name](page, *extra.get(name, []))}
                messages = [each["message"] for each in page.driver.get_log("browser") if each["level"] == "SEVERE"
                            and not any(part in each["message"] for part in ["401", "404", "ERR_"])]
                if messages:
                    results[name] = {"ok": False, "message": f"the console has errors: {messages[:3]}"}
            except Exception as error:
                print(traceback.format_exc(), file=sys.stderr)
                results[name] = {"ok": False, "message": str(error).split("\n")[0]}
        if arguments.screenshots:
            screenshots(page, arguments.screenshots)
    finally:
        page.close()
    print(json.dumps(results))
    return 0 if all(result["ok"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
