// The view of the current activity: rates, hits, savings, requests in progress, waits, errors, and the use of the
// capacity.
import * as api from "./api.js";
import { contextOf, drawMap } from "./bytemap.js";
import { Chart } from "./chart.js";
import { problems } from "./connection.js";
import { card, figure, fill, make, setText } from "./elements.js";
import { errorLink, errors } from "./errors.js";
import { ago, axisRate, bytes, date, names, number, percent, plural, rate, sentence } from "./format.js";
import { addDrawing, requestFrame } from "./frames.js";
import { groupedWaits, waits } from "./requests.js";
import { store } from "./store.js";

export class NowView {
    /// The time at which the figures last changed. The initial value allows the first change at any time.
    #shownAt = -Infinity;
    #timer = null;
    #history = null;

    constructor(section) {
        this.figures = ["From the cache", "From origins", "Hit ratio", "Saved today (UTC)",
            "Saved since the server started", "Requests to origins", "Readers", "Errors"].map(figure);
        this.since = make("p", { class: "quiet" });
        const perSecond = name => sample => sample[name] / this.interval;
        this.interval = 10;
        this.bytesChart = new Chart({
            title: "Bytes per second", format: rate, axisFormat: axisRate, isStacked: true, series: [
                { label: "from the cache", color: "chart-cache", value: perSecond("savedBytes") },
                { label: "from origins", color: "chart-origin", value: perSecond("originBytes") }],
        });
        this.hitChart = new Chart({
            title: "Hit ratio", limit: 1, format: value => value === null ? "–" : percent(value, 1), series: [
                { label: "share of hits", color: "chart-cache", value: ({ ratio }) => ratio }],
        });
        this.rows = new Map();
        this.list = make("ul", { class: "transfers" });
        this.more = make("p", { class: "quiet" });
        this.transfers = make("div", { class: "stack" }, this.list, this.more);
        this.waits = make("div");
        this.problems = make("div");
        this.hosts = make("div");
        this.types = make("div");
        this.events = make("div");
        section.classList.add("stack");
        const columns = (...content) => make("div", { class: "columns" }, content);
        section.append(make("dl", { class: "figures" }, this.figures.map(({ element }) => element)), this.since,
            columns(this.bytesChart.element, this.hitChart.element),
            columns(card("Slow playback", this.waits), card("Errors and warnings", this.problems,
                make("p", {}, make("a", { href: "#/errors" }, "All codes and their meanings")))),
            card("Requests in progress", this.transfers),
            columns(card("Stored bytes by host", this.hosts), card("Stored bytes by type", this.types)),
            card("Recent events", this.events));
        store.addEventListener("update", () => this.#update());
        document.addEventListener("visibilitychange", () => {
            if (!document.hidden && this.isVisible) this.isShown = true;
        });
        store.addEventListener("list", () => {
            this.#update();
            if (this.isVisible) this.#showLog();
        });
        store.addEventListener("log", () => this.isVisible && this.#showLog());
        store.addEventListener("connection", () => this.isVisible && this.#load());
        addDrawing(time => this.#draw(time));
    }

    set isShown(value) {
        this.isVisible = value;
        clearInterval(this.#timer);
        if (!value) return;
        this.#shownAt = -Infinity;
        this.#update();
        this.#showLog();
        this.#load();
        this.#timer = setInterval(() => document.hidden || this.#load(), 10_000);
    }

    async #load() {
        try {
            const [history, status] = await Promise.all([api.history(), api.status()]);
            this.interval = history.intervalSeconds;
            this.#history = history.samples.map((sample, index, all) => {
                const ratio = this.#ratio(all.slice(Math.max(0, index - 5), index + 1));
                return { ...sample, time: Date.parse(sample.time), ratio };
            });
            this.#showCharts();
            this.#showShares(this.hosts, "host", status.hosts);
            this.#showShares(this.types, "type", status.types);
        } catch {
            // The banner shows that the server does not respond. The next attempt follows.
        }
    }

    /// The hit ratio over the last minute, because a single interval contains too few requests.
    #ratio(samples) {
        const requests = samples.reduce((sum, sample) => sum + sample.requests, 0);
        return requests === 0 ? null : samples.reduce((sum, sample) => sum + sample.hits, 0) / requests;
    }

    #showCharts() {
        const samples = this.#history, sum = name => samples.reduce((total, sample) => total + sample[name], 0);
        const hour = "in the last hour";
        this.bytesChart.show(samples, `${bytes(sum("savedBytes"))} from the cache and ${bytes(sum("originBytes"))
        } from origins ${hour}`);
        this.hitChart.show(samples, `${plural(sum("hits"), "hit")} in ${plural(sum("requests"), "request")}, ${
            plural(sum("errors"), "error")} ${hour}`);
    }

    #update() {
        const { totals } = store;
        // Numbers that change more often than twice per second can't be read.
        if (!this.isVisible || document.hidden || !totals || performance.now() - this.#shownAt < 500) return;
        this.#shownAt = performance.now();
        const [cache, origin, hits, today, saved, requests, readers, failures] = this.figures;
        const { hit, miss, partial, stale } = totals.requests, all = hit + miss + partial + stale;
        cache.set(rate(store.rates.cache), `${bytes(totals.savedBytes)} in total`);
        origin.set(rate(store.rates.origin), `${bytes(totals.originBytes)} in total`);
        hits.set(percent(hit, all), all === 0 ? "no requests yet" : `${number(hit)} of ${plural(all, "request")}`);
        const started = Date.parse(totals.started), midnight = new Date().setUTCHours(0, 0, 0, 0);
        setText(this.since, Number.isNaN(started) ? ""
            : `Totals cover only the time since the server started (${date(started)}).`);
        today.set(bytes(totals.savedBytesToday), started > midnight ? "since the server started"
            : "since midnight UTC");
        saved.set(bytes(totals.savedBytes), totals.servedBytes === 0 ? "no bytes served yet"
            : `${percent(totals.savedBytes, totals.servedBytes)} of served bytes`);
        requests.set(number(store.transferCount), `${number(totals.originRequests)} in total`);
        const waiting = store.waitingCount;
        readers.set(number(totals.openReaders), waiting > 0 ? `${number(waiting)} waiting` : "none waiting");
        failures.set(number(totals.errors), plural(totals.retries, "retry", "retries"));
        this.#showTransfers();
        requestFrame();
    }

    #showTransfers() {
        const list = [...store.transfers.values()].flat().sort((a, b) => b.bytesPerSecond - a.bytesPerSecond);
        const shown = list.slice(0, 12), ids = new Set(shown.map(({ id }) => id));
        for (const [id, row] of this.rows) {
            if (ids.has(id)) continue;
            row.element.remove();
            this.rows.delete(id);
        }
        for (const transfer of shown) {
            if (!this.rows.has(transfer.id)) this.rows.set(transfer.id, this.#row(transfer));
            const row = this.rows.get(transfer.id);
            const end = transfer.end ?? store.resources.get(transfer.key)?.length ?? null;
            const received = bytes(transfer.position - transfer.start);
            setText(row.rate, rate(transfer.bytesPerSecond));
            setText(row.bytes, end === null ? received : `${received} of ${bytes(end - transfer.start)}`);
        }
        this.list.hidden = list.length === 0;
        this.more.textContent = list.length === 0 ? "No requests in progress."
            : store.transferCount > shown.length ? `${number(store.transferCount - shown.length)} more` : "";
    }

    #row({ key, url }) {
        const row = { key, rate: make("span", { class: "number" }), bytes: make("span", { class: "number quiet" }) };
        row.canvas = make("canvas", { "aria-hidden": "true" });
        row.element = make("li", {}, make("a", { href: `#/resource/${key}` }, make("bdi", {}, names(url).name)),
            row.canvas, row.rate, row.bytes);
        this.list.append(row.element);
        return row;
    }

    #draw(now) {
        if (!this.isVisible) return false;
        let moves = false;
        for (const { key, canvas } of this.rows.values()) {
            const resource = store.resources.get(key), width = canvas.clientWidth;
            if (!resource || width === 0) continue;
            const context = contextOf(canvas, width, 22);
            moves = drawMap(context, resource, { top: 6, width, height: 16 }, now) || moves;
        }
        return moves;
    }

    #showShares(element, name, rows) {
        if (rows.length === 0) {
            fill(element, make("p", { class: "empty" }, "Nothing is stored."));
            return;
        }
        const most = rows[0].storedBytes || 1, shown = rows.slice(0, 10);
        fill(element, make("ul", { class: "shares" }, shown.map(row => {
            const part = make("span", { class: "part" }), label = row[name] ?? "unknown";
            part.style.inlineSize = `${row.storedBytes / most * 100}%`;
            return make("li", {}, name === "host" ? make("a", { href: `#/?host=${encodeURIComponent(label)}` }, label)
                : make("span", {}, label), make("span", { class: "number" }, bytes(row.storedBytes)),
            make("span", { class: "bar" }, part), make("span", { class: "number quiet" }, plural(row.files, "file")));
        })), rows.length > 10 ? make("p", { class: "quiet" }, `${number(rows.length - 10)} more`) : null);
    }

    #showLog() {
        const newest = [...store.log].reverse();
        const slow = groupedWaits(newest.filter(({ kind }) => kind === "waited").map(entry => ({
            ...entry, cause: entry.code, name: names(entry.url).name,
        })));
        fill(this.waits, waits(slow, { links: true, empty: "No waits in the latest log entries." }));
        const failed = newest.filter(({ kind }) => problems.has(kind)).slice(0, 8);
        fill(this.problems, failed.length === 0 ? make("p", { class: "empty" }, this.#noProblems)
            : make("ul", { class: "waits" }, failed.map(entry => this.#problem(entry))));
        fill(this.events, newest.length === 0 ? make("p", { class: "empty" }, "No events yet.")
            : make("ul", { class: "events" }, newest.slice(0, 30).map(entry => make("li", {},
                make("time", { class: "quiet", dateTime: entry.time, title: date(Date.parse(entry.time)) },
                    ago(Date.parse(entry.time))),
                this.#link(entry), make("span", { class: "breaks" }, sentence(entry.message))))));
    }

    /// The text for a log without errors and warnings. The log is limited, but the number of errors is complete.
    get #noProblems() {
        const count = store.totals?.errors ?? 0;
        return count === 0 ? "No errors or warnings in the latest log entries."
            : `${plural(count, "error")} since the server started. The latest log entries contain none.`;
    }

    /// The name of an entry's resource, as a link if the resource is stored. It is empty if the entry has no resource.
    #link({ key, url }) {
        if (key === null) return make("span");
        const name = make("bdi", {}, names(url).name);
        return store.resources.has(key) ? make("a", { class: "cut", href: `#/resource/${key}` }, name)
            : make("span", { class: "cut" }, name);
    }

    #problem(entry) {
        const isFailure = entry.kind === "failed", [meaning, fix] = errors[entry.code] ?? [];
        const resource = store.resources.get(entry.key);
        return make("li", {}, make("p", { class: "line" },
            make("span", { class: `tag ${isFailure ? "bad" : "warn"}` }, isFailure ? "Error" : "Warning"),
            resource && make("a", { href: `#/resource/${entry.key}` }, make("bdi", {}, resource.name)),
            make("time", { class: "quiet", dateTime: entry.time }, ago(Date.parse(entry.time)))),
        make("p", { class: "breaks" }, sentence(entry.message)),
        meaning && make("p", { class: "quiet" }, meaning, " ", fix, " ", errorLink(entry.code)));
    }
}
