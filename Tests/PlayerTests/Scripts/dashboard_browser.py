"""The browser of dashboard.py: Chromium, controlled by Selenium, and a relay that can interrupt the connection."""
import contextlib
import os
import select
import shutil
import socket
import threading
import time
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

# Functions that compute colors and their luminance.
COLORS = """
const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rgba = text => {
    if (text.startsWith("rgb")) { const [r, g, b, a = 1] = parse(text); return [r, g, b, a]; }
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
};
const over = ([r, g, b, a], below) => [r, g, b].map((each, i) => each * a + below[i] * (1 - a));
const channel = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const background = element => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
        layers.unshift(rgba(getComputedStyle(each).backgroundColor));
    }
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
};
"""

# The visible texts whose contrast with their background is below AA (WCAG 2.2, 1.4.3). Disabled controls are exempt.
LOW_CONTRAST = COLORS + """
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let count = 0;
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, text = node.textContent.trim();
    if (!text || element.closest("noscript, .hidden, :disabled, option") || !element.checkVisibility({
        opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(element), below = background(element), size = parseFloat(style.fontSize);
    const [a, b] = [light(over(rgba(style.color), below)), light(below)].sort((x, y) => y - x);
    const isLarge = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    const ratio = (a + 0.05) / (b + 0.05);
    count += 1;
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
}
return { count, found };
"""

# The graphics and fields whose contrast with their neighbors is below AA (WCAG 2.2, 1.4.11). The script draws a chart
# and a map with all kinds of bytes and readers, and compares the colors of pixels.
LOW_GRAPHICS_CONTRAST = COLORS + """
const done = arguments[0], found = [], colors = new Set();
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((x, y) => y - x); return (x + 0.05) / (y + 0.05); };
const variable = name => {
    const color = rgba(getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    return color.slice(0, 3);
};
let count = 0;
const check = (name, a, b) => {
    count += 1;
    if (ratio(a, b) < 3) found.push(`${name}: ${ratio(a, b).toFixed(2)}`);
};
const isSame = (a, b) => a.every((value, index) => Math.abs(value - b[index]) < 2);
const named = Object.fromEntries(["card", "edge", "ink", ...["track", "stored", "arriving", "head", "evicted", "reader",
    "waiting"].map(name => `map-${name}`), "chart-cache", "chart-origin"].map(name => [name, variable(name)]));
// The colors along a line of pixels. Pixels at the edge of two areas can have a mixed color, and are skipped.
const along = (context, box, names) => {
    const { data } = context.getImageData(...box), list = [];
    for (let index = 0; index < data.length; index += 4) {
        const pixel = data[index + 3] === 0 ? named.card : [...data.slice(index, index + 3)];
        const name = names.find(each => isSame(pixel, named[each]));
        if (name && list.at(-1) !== name) list.push(name);
    }
    return list;
};
// Marks are drawn above areas, and a line of the background's color may be between two of them.
const backgrounds = ["card", "edge", "map-track"];
const compare = (name, list) => list.forEach((each, index) => {
    colors.add(each);
    const next = list[index + 1];
    if (!next || backgrounds.includes(each) && backgrounds.includes(next)) return;
    check(`${name}, ${each} next to ${next}`, named[each], named[next]);
});
(async () => {
    const load = name => import(new URL(name, document.baseURI));
    const [{ drawMap, contextOf }, { store }, { Chart }] = await Promise.all(
        ["bytemap.js", "store.js", "chart.js"].map(load));
    const resource = { key: "test", kind: "file", length: 400, ranges: [[0, 100], [200, 240], [300, 340]] };
    const mark = { position: 20, drawn: 20, bytesPerSecond: 0, time: performance.now() };
    store.evictions.set("test", [{ range: [100, 150], time: performance.now() },
        { range: [240, 260], time: performance.now() }]);
    store.transfers.set("test", [{ ...mark, id: 1, start: 150, position: 180, drawn: 180, end: 200 },
        { ...mark, id: 2, start: 340, position: 360, drawn: 360, end: 380 }]);
    store.readers.set("test", [{ ...mark, id: 1 }, { ...mark, id: 2, position: 60, drawn: 60, isWaiting: true },
        { ...mark, id: 3, position: 120, drawn: 120 }, { ...mark, id: 4, position: 165, drawn: 165, isWaiting: true },
        { ...mark, id: 5, position: 280, drawn: 280 }, { ...mark, id: 6, position: 390, drawn: 390, isWaiting: true }]);
    const context = contextOf(document.createElement("canvas"), 400, 40);
    drawMap(context, resource, { top: 10, width: 400, height: 20 }, performance.now());
    for (const group of [store.evictions, store.transfers, store.readers]) group.delete("test");
    const mapNames = Object.keys(named).filter(name => !name.startsWith("chart") && name !== "ink");
    compare("map", along(context, [0, 20, 400, 1], mapNames));
    const [above, edge] = along(context, [270, 0, 1, 40], mapNames);
    check(`edge of the map, ${edge}`, named[above], named[edge]);
    const line = along(context, [370, 20, 1, 20], mapNames);
    if (!line.includes("map-arriving")) found.push(`the requested range is not marked: ${line}`);
    for (const name of mapNames) if (!colors.has(name)) found.push(`${name} is not drawn`);

    const chart = new Chart({ title: "", format: String, isStacked: true, series: [
        { label: "a", color: "chart-cache", value: () => 40_000 },
        { label: "b", color: "chart-origin", value: () => 40_000 }] });
    document.querySelector("main").append(chart.element);
    chart.show([{ time: 0 }, { time: 1 }], "");
    chart.canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
    await new Promise(resolve => setTimeout(resolve, 200));
    const height = chart.canvas.height - 25, names = ["card", "ink", "chart-cache", "chart-origin"];
    for (const box of [[300, 0, 1, height], [0, height - 20, 300, 1]]) {
        const list = along(chart.canvas.getContext("2d"), box, names);
        if (list.length < 2) found.push(`the chart is not drawn: ${list}`);
        compare("chart", list);
    }
    chart.element.remove();

    const outside = element => background(element.parentElement);
    const shown = selector => [...document.querySelectorAll(selector)].filter(each => each.checkVisibility());
    for (const field of shown("input:not([type=checkbox]), select, textarea")) {
        const below = outside(field), edge = over(rgba(getComputedStyle(field).borderTopColor), below);
        check(`edge of ${field.id || field.ariaLabel}`, edge, below);
    }
    for (const bar of shown(".bar")) {
        check("edge of a bar", rgba(getComputedStyle(bar).borderTopColor), outside(bar));
        check("part of a bar", background(bar.firstChild), background(bar));
    }
    for (const flight of shown(".flight")) {
        check(flight.className, background(flight), outside(flight));
        if (flight.firstChild.offsetWidth > 0) {
            check("wait for the first byte", background(flight), background(flight.firstChild));
        }
    }
    for (const item of shown(".legend li")) {
        check(item.innerText, rgba(getComputedStyle(item, "::before").backgroundColor), background(item));
    }
    for (const element of shown("button, a, input, select, [role=row], main")) {
        check("focus", variable("accent"), outside(element));
    }
    done({ count, found });
})().catch(error => done({ count, found: [String(error)] }));
"""

# Collects the duration of each frame of the page's drawing loop.
WATCH_FRAMES = """
window.spoolFrames = [];
window.spoolObserver?.disconnect();
window.spoolObserver = new PerformanceObserver(list => {
    for (const { name, duration } of list.getEntries()) if (name === "spool-frame") window.spoolFrames.push(duration);
});
window.spoolObserver.observe({ entryTypes: ["measure"] });
"""

INTERACTIVE = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "grid", "img", "dialog",
               "navigation", "slider", "Video", "Audio"}


class Relay:
    """Forwards TCP connections to the server, and stores the headers of requests.

    `cut` interrupts all connections, and `restore` accepts new ones. While `holds` is set, responses with events are
    not read from the server."""

    def __init__(self, host, port):
        self.target, self.pairs, self.requested, self.listener = (host, port), [], [], None
        self.port, self.holds = 0, False
        self.restore()

    def restore(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def cut(self):
        # shutdown() ends the accept() call of the thread, which then closes the listener.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for each in self.pairs:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.pairs = []

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                return
            self.pairs += [client, server]
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client, server):
        with client, server, contextlib.suppress(OSError, ValueError):
            is_event_stream = False
            while True:
                readable = [client] if self.holds and is_event_stream else [client, server]
                for each in select.select(readable, [], [], 0.1)[0]:
                    data = each.recv(1 << 16)
                    if not data:
                        return
                    if each is client:
                        self.requested.append(data.split(b"\r\n\r\n", 1)[0].decode("latin-1"))
                        is_event_stream = b"/api/events" in data.split(b"\r\n", 1)[0]
                    (server if each is client else client).sendall(data)


class Page:
    """A page of the dashboard in headless Chromium, behind a relay."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        self.relay = Relay(parts.hostname, parts.port or 80)
        self.base = f"http://127.0.0.1:{self.relay.port}{parts.path}"
        self.token = token
        options = Options()
        for argument in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--lang=en-US",
                         "--autoplay-policy=no-user-gesture-required", "--disable-features=BackForwardCache",
                         "--window-size=1280,900"]:
            options.add_argument(argument)
        options.binary_location = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)

    def cdp(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def emulate(self, width=1280, height=900, scheme="light", motion="no-preference"):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion}])

    def open(self, fragment="", with_token=False):
        """Opens a view in a new document, and waits until its data is shown."""
        self.driver.get("about:blank")
        if with_token:
            self.driver.get(f"{self.base}#token={self.token}")
            self.wait(lambda: self.js("return sessionStorage.length") == 1)
            self.js("location.hash = arguments[0]", fragment or "#/")
        else:
            self.driver.get(self.base + fragment)
        self.wait(lambda: self.js("return document.querySelector('#connection')?.dataset.state") == "live")
        self.wait(lambda: "Loading" not in self.text())
        time.sleep(0.4)

    def wait(self, condition, seconds=10):
        end = time.time() + seconds
        while time.time() < end:
            if value := condition():
                return value
            time.sleep(0.05)
        raise AssertionError(f"timed out: {getattr(condition, '__name__', condition)}")

    def text(self, selector="main"):
        return self.js("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def stored(self):
        return self.js("return fetch('api/resources').then(response => response.json())")["resources"]

    def resource_view(self, is_stream=False):
        """Returns the fragment of a stream if `is_stream` is true, otherwise of a video with a known length."""
        resources = self.stored()
        chosen = [r for r in resources if r["kind"] != "file"] if is_stream else [
            r for r in resources if r["length"] and (r["contentType"] or "").startswith("video")]
        return "#/resource/" + (chosen or resources)[0]["key"]

    def views(self):
        self.open()
        if not self.stored():
            return ["#/", "#/now", "#/settings", "#/errors"]
        return ["#/", "#/now", "#/settings", "#/errors", self.resource_view(), self.resource_view(is_stream=True)]

    def rows(self):
        return self.js("return [...document.querySelectorAll('.rows [role=row]')].map(row => row.innerText)")

    def active(self, script="return document.activeElement.outerHTML.slice(0, 120)"):
        return self.js(script)

    def press(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def tab_to(self, selector, key, limit=60):
        """Presses Tab until an element that matches has the focus."""
        for _ in range(limit):
            if self.js("return document.activeElement.matches(arguments[0])", selector):
                return
            webdriver.ActionChains(self.driver).send_keys(key).perform()
        raise AssertionError(f"Tab does not reach {selector}; the focus is on {self.active()}")

    def frames(self, seconds, scroll=False):
        """Returns the durations of the frames during the given number of seconds, in milliseconds."""
        self.js(WATCH_FRAMES)
        end = time.time() + seconds
        while time.time() < end:
            if scroll:
                self.js("scrollBy(0, 120)")
            time.sleep(0.1)
        return sorted(self.js("return window.spoolFrames"))

    def unnamed(self):
        """Returns interactive elements and images without an accessible name, and the number of all such elements."""
        self.cdp("Accessibility.enable")
        nodes = self.cdp("Accessibility.getFullAXTree")["nodes"]
        found, count = [], 0
        for node in nodes:
            role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
            focusable = any(p["name"] == "focusable" and p["value"].get("value") for p in node.get("properties", []))
            if node.get("ignored") or role in {"RootWebArea", "main"} or not (focusable or role in INTERACTIVE):
                continue
            count += 1
            if not name.strip():
                found.append(role)
            if focusable and role in {"generic", "none"}:
                found.append(f"{role} “{name}”")
        self.cdp("Accessibility.disable")
        return count, found

    def close(self):
        self.driver.quit()
        self.relay.cut()
