// The view of all resources: totals, the list with a map of each resource, and the actions.
import * as actions from "./actions.js";
import { playerURL, shownAddress } from "./api.js";
import { contextOf, describe, drawMap } from "./bytemap.js";
import { button, copyable, figure, icon, make, setText } from "./elements.js";
import { Filters, isActive } from "./filters.js";
import { ago, bytes, percent, plural } from "./format.js";
import { requestFrame } from "./frames.js";
import { Grid } from "./list.js";
import { announce } from "./messages.js";
import { Selection } from "./selection.js";
import { store } from "./store.js";

const mapHeight = 26, mapTop = 6;

export class Library {
    #orderedAt = 0;
    #mapWidth = 0;
    #isVisible = false;

    constructor(section) {
        this.figures = ["Stored", "Saved by the cache", "Hit ratio", "In progress"].map(figure);
        this.filters = new Filters(announcement => {
            this.#arrange();
            if (announcement) announce(announcement === "filter" ? this.count.textContent : announcement);
        });
        this.selection = new Selection(() => this.grid, list => this.#remove(list));
        this.count = make("p", { class: "quiet count" });
        this.toolbar = make("div", { class: "toolbar", role: "search" }, this.filters.elements,
            make("div", { class: "row-of end" }, button("Preload …", () => actions.preload(), "primary"),
                button("Purge …", () => actions.purge())));
        const head = make("div", { role: "row", class: "library-row head", "aria-rowindex": 1 },
            make("span", { role: "columnheader", class: "cell-select" }, this.selection.all), this.filters.heads);
        const body = make("div", { role: "rowgroup", class: "rows" });
        this.table = make("div", {
            role: "grid", class: "library card", "aria-label": "Resources", "aria-multiselectable": "true",
            "aria-colcount": 8, "aria-describedby": "library-keys", hidden: true,
        }, make("div", { role: "rowgroup", class: "head-group" }, head), body);
        this.keys = make("p", { id: "library-keys", class: "quiet keys", hidden: true },
            "Keys: arrows move, Space selects, Enter opens, P pins, Delete removes.");
        this.empty = make("div", { class: "card welcome" });
        section.append(make("dl", { class: "figures" }, this.figures.map(({ element }) => element)), this.toolbar,
            this.count, this.table, this.empty, this.keys, this.selection.bar);
        this.grid = new Grid(body, {
            makeRow: item => this.#makeRow(item), fillRow: (row, item) => this.#fillRow(row, item),
            drawRow: (row, item, now) => this.#drawRow(row, item, now),
            extend: (from, to) => this.selection.extend(from, to), key: (event, item) => this.#key(event, item),
            resized: () => { this.#mapWidth = 0; },
        });
        store.addEventListener("list", () => this.#arrange(this.#isBusy));
        store.addEventListener("update", event => this.#update(event.detail));
        store.addEventListener("connection", () => this.#showFigures());
        store.addEventListener("failure", () => this.#showEmpty());
        setInterval(() => document.hidden || this.#isVisible && this.grid.refill(), 10_000);
        // A hidden page does not show updates.
        document.addEventListener("visibilitychange", () => {
            if (!document.hidden && this.#isVisible) this.#arrange(this.#isBusy);
        });
    }

    set isShown(value) {
        this.#isVisible = value;
        this.grid.isVisible = value;
        this.#arrange();
    }

    /// Shows only the resources of a host, type or state, for links from other views.
    show(parameters) {
        this.filters.set(Object.fromEntries(parameters));
    }

    // MARK: Content

    /// Shows the resources that match. With `keepsOrder`, the order stays, and new resources are added at the end.
    #arrange(keepsOrder = false) {
        if (!this.#isVisible) return;
        this.#orderedAt = performance.now();
        const { items } = this.filters;
        if (keepsOrder) {
            const place = ({ key }) => this.grid.indexOf(key) < 0 ? Infinity : this.grid.indexOf(key);
            items.sort((a, b) => place(a) === place(b) ? 0 : place(a) - place(b));
        }
        this.grid.setItems(items);
        this.table.setAttribute("aria-rowcount", items.length + 1);
        this.filters.show();
        this.filters.describe(this.count, items.length);
        this.selection.show();
        this.#showFigures();
        this.#showEmpty();
    }

    /// Applies an update. The order stays while the pointer or the focus is in the list, or rows are selected.
    #update({ changed }) {
        for (const { key } of changed) this.grid.replace(store.resources.get(key));
        if (!this.#isVisible || document.hidden) return;
        this.#showFigures();
        this.selection.describe();
        const mayChange = changed.length > 0 || this.filters.values.state === "active";
        if (mayChange && !this.#isBusy && performance.now() - this.#orderedAt > 5000) this.#arrange();
        requestFrame();
    }

    get #isBusy() {
        return this.selection.keys.size > 0 || this.table.matches(":hover, :focus-within");
    }

    #showFigures() {
        const { totals } = store;
        if (!totals) return;
        const [stored, saved, hits, progress] = this.figures, { hit, miss, partial, stale } = totals.requests;
        const capacity = totals.capacityBytes, requests = hit + miss + partial + stale;
        stored.set(bytes(totals.storedBytes), capacity === null ? "no limit"
            : `${percent(totals.storedBytes, capacity)} of ${bytes(capacity)}`,
        capacity === null ? null : totals.storedBytes / capacity);
        saved.set(bytes(totals.savedBytes), `since the server started, ${bytes(totals.savedBytesToday)} today (UTC)`);
        hits.set(percent(hit, requests), requests === 0 ? "no requests yet" : `of ${plural(requests, "request")}`);
        progress.set(plural(totals.openRequests, "request"), plural(totals.openReaders, "reader"));
    }

    #showEmpty() {
        const isEmpty = this.grid.items.length === 0;
        this.table.hidden = this.keys.hidden = isEmpty;
        this.empty.hidden = !isEmpty;
        if (!isEmpty) {
            this.toolbar.hidden = this.count.hidden = false;
            delete this.empty.dataset.state;
            return;
        }
        const state = !store.isLoaded ? "loading" : store.resources.size > 0 ? "filtered" : "empty";
        if (this.empty.dataset.state === state) return;
        this.empty.dataset.state = state;
        this.toolbar.hidden = this.count.hidden = state === "empty";
        const example = "https://example.com/video.mp4";
        this.empty.replaceChildren(...{
            loading: [make("p", { class: "empty" }, "Loading the list …")],
            filtered: [make("h2", {}, "No resource matches"), button("Clear search and filters", () => {
                this.filters.set({});
                this.filters.search.focus();
            })],
            empty: [make("img", { src: "icon.svg", alt: "", width: 64, height: 64 }),
                make("h2", {}, "The cache is empty"),
                make("p", {}, "Spool caches media while it plays through the proxy. Open a URL of this form in any ",
                    "player. It is the server’s address, followed by the media URL with its scheme as a folder:"),
                copyable(playerURL(example), { shown: playerURL(example, shownAddress()) }),
                make("p", {}, "The next playback does not request the stored bytes again."),
                make("h3", {}, "Media for offline playback"),
                make("p", {}, "Preload the media and pin it. Pinned media is never evicted."),
                button("Preload …", () => actions.preload(), "primary")],
        }[state]);
    }

    // MARK: Rows

    #makeRow(item) {
        const row = {}, cell = (name, ...content) => make("span", { role: "gridcell", class: `cell-${name}` }, content);
        row.check = make("input", {
            type: "checkbox", tabIndex: -1, onclick: event => this.selection.toggle(item.key, event.shiftKey),
        });
        row.name = make("bdi");
        row.link = make("a", { href: `#/resource/${item.key}`, tabIndex: -1 }, row.name);
        row.host = make("span", { class: "quiet host" });
        for (const name of ["type", "stored", "size", "used"]) row[name] = cell(name);
        row.canvas = make("canvas", { role: "img" });
        row.pin = button(icon("pin"), () => this.#pin(item.key), "pin", { tabIndex: -1 });
        row.element = make("div", { role: "row", class: "library-row", onclick: event => this.#click(event, item.key) },
            cell("select", row.check), cell("name", row.link, row.host), row.type, cell("share", row.canvas),
            row.stored, row.size, row.used, cell("pinned", row.pin));
        return row;
    }

    #fillRow(row, item) {
        const isSelected = this.selection.keys.has(item.key);
        setText(row.name, item.name);
        row.link.title = item.url;
        setText(row.host, item.host);
        setText(row.type, item.type);
        setText(row.stored, bytes(item.storedBytes));
        setText(row.size, item.length !== null ? bytes(item.length)
            : item.kind === "file" ? "unknown" : plural(item.files, "file"));
        setText(row.used, ago(item.used));
        row.pin.setAttribute("aria-pressed", item.pinned);
        row.pin.setAttribute("aria-label", `Pin ${item.name}`);
        row.pin.title = item.pinned ? "Pinned: never evicted" : "Pin";
        row.check.checked = isSelected;
        row.check.setAttribute("aria-label", `Select ${item.name}`);
        row.element.setAttribute("aria-selected", isSelected);
        row.canvas.setAttribute("aria-label", describe(item));
    }

    #drawRow(row, item, now) {
        const isLive = isActive(item) || store.evictions.has(item.key);
        if (!isLive && !row.isLive && row.drawn === item && row.mapWidth === this.#mapWidth) return false;
        this.#mapWidth ||= row.canvas.clientWidth;
        const context = contextOf(row.canvas, this.#mapWidth, mapHeight);
        Object.assign(row, { isLive, drawn: item, mapWidth: this.#mapWidth });
        return drawMap(context, item, { top: mapTop, width: this.#mapWidth, height: mapHeight - mapTop }, now);
    }

    #click(event, key) {
        if (event.target.closest("a, button, input")) return;
        this.grid.focus(key);
        if (event.shiftKey) this.selection.toggle(key, true);
        else if (event.ctrlKey || event.metaKey) this.selection.toggle(key);
        else if (event.detail === 2) location.hash = `#/resource/${key}`;
    }

    #key(event, item) {
        const { key } = event, isOnRow = event.target.getAttribute("role") === "row", { selection } = this;
        const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
        if (key === " " && isOnRow) selection.toggle(item.key, event.shiftKey);
        else if (key === "Enter" && isOnRow) location.hash = `#/resource/${item.key}`;
        else if (key === "a" && (event.ctrlKey || event.metaKey)) selection.setAll(true);
        else if (key === "Escape" && selection.keys.size > 0) selection.setAll(false);
        else if (key === "Delete") this.#remove(selection.keys.has(item.key) ? selection.resources : [item]);
        else if (key === "p" && isPlain) this.#pin(item.key);
        else return false;
        return true;
    }

    #pin(key) {
        const item = store.resources.get(key);
        if (item) (item.pinned ? actions.unpin : actions.pin)([item]);
    }

    async #remove(list) {
        const index = this.grid.indexOf(list[0].key);
        if (!await actions.remove(list)) return;
        const next = this.grid.items[Math.min(index, this.grid.items.length - 1)];
        if (next) this.grid.focus(next.key);
        else this.filters.search.focus();
    }
}
