// The toolbar of the library: search, filters by host, type and state, and the order of the list.
import { button, make, setText } from "./elements.js";
import { number } from "./format.js";
import { store } from "./store.js";

const text = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const share = ({ kind, storedBytes, length, files, completeFiles }) =>
    kind === "file" ? storedBytes / (length || Infinity) : completeFiles / (files || 1);

/// The columns with their comparison functions. The initial order of a column is the more useful one, such as the
/// largest first.
const columns = {
    name: ["Name", (a, b) => text.compare(a.name, b.name)],
    type: ["Type", (a, b) => text.compare(a.type, b.type)],
    share: ["Bytes", (a, b) => share(b) - share(a)],
    stored: ["Stored", (a, b) => b.storedBytes - a.storedBytes],
    size: ["Size", (a, b) => (b.length ?? 0) - (a.length ?? 0)],
    used: ["Last used", (a, b) => b.used - a.used],
    pinned: ["Pin", (a, b) => Number(b.pinned) - Number(a.pinned)],
    host: ["Host", (a, b) => text.compare(a.host, b.host) || text.compare(a.path, b.path)],
};

/// Whether a resource is being received or read now.
export const isActive = ({ key }) => store.transfers.has(key) || store.readers.has(key);

const states = {
    all: ["All states", () => true], complete: ["Complete", ({ complete }) => complete],
    // A playlist may list more files than are stored, so a stream is never known to be complete.
    incomplete: ["Incomplete", ({ kind, complete, files, completeFiles }) =>
        kind === "file" ? !complete : completeFiles < files],
    pinned: ["Pinned", ({ pinned }) => pinned],
    active: ["In use now", isActive],
};
const menus = {
    host: ["All hosts", ({ host }) => host],
    type: ["All types", ({ kind, type }) => kind === "file" ? type.split(" ")[0] : type],
};
const unfiltered = { search: "", host: "", type: "", state: "all" };

export class Filters {
    values = { ...unfiltered };
    column = "used";
    isReversed = false;

    /// - changed(announcement): called when the filter or the order has changed. The announcement is `null` for the
    ///   search.
    constructor(changed) {
        this.changed = changed;
        this.search = make("input", {
            type: "search", placeholder: "Search name, host or path", "aria-label": "Search",
            oninput: () => this.#set("search", this.search.value.trim().toLowerCase()),
        });
        const menu = (label, name, ...options) => make("select", {
            "aria-label": label, onchange: event => this.#set(name, event.target.value),
        }, options);
        this.menus = {
            state: menu("State", "state", ...Object.entries(states).map(([name, [label]]) => new Option(label, name))),
            type: menu("Type", "type"), host: menu("Host", "host"),
        };
        this.sortMenu = make("select", {
            "aria-label": "Sort by", class: "phone", onchange: () => this.#sort(this.sortMenu.value, false),
        }, Object.entries(columns).map(([name, [label]]) => new Option(`Sort: ${label}`, name)));
        this.sortMenu.value = this.column;
        this.elements = [this.search, ...Object.values(this.menus), this.sortMenu];
        this.heads = Object.entries(columns).filter(([name]) => name !== "host").map(([name, [label]]) =>
            make("span", { role: "columnheader", "data-column": name, class: `cell-${name}` },
                button(label, () => this.#sort(name, this.column === name && !this.isReversed), "link")));
    }

    /// The resources that match, in order.
    get items() {
        const { search, host, type, state } = this.values, words = search.split(/\s+/).filter(Boolean);
        const isInState = states[state][1], typeOf = menus.type[1];
        const items = [...store.resources.values()].filter(item => (host === "" || item.host === host)
            && (type === "" || typeOf(item) === type) && isInState(item)
            && words.every(word => item.search.includes(word)));
        items.sort(columns[this.column][1]);
        return this.isReversed ? items.reverse() : items;
    }

    /// Updates the filters' choices with their counts, and the mark of the sorted column.
    show() {
        for (const name of Object.keys(menus)) this.#fill(name);
        for (const head of this.heads) {
            const { column } = head.dataset, isDown = ["name", "type"].includes(column) === this.isReversed;
            if (column === this.column) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
            else head.removeAttribute("aria-sort");
        }
    }

    /// Sets filters by name, for links from other views.
    set(values) {
        this.values = { ...unfiltered, ...values };
        this.search.value = this.values.search;
        this.show();
        for (const [name, menu] of Object.entries(this.menus)) menu.value = this.values[name];
        this.changed(null);
    }

    #set(name, value) {
        this.values[name] = value;
        this.changed("filter");
    }

    #sort(column, isReversed) {
        Object.assign(this, { column, isReversed });
        this.sortMenu.value = column;
        this.changed(`Sorted by ${columns[column][0].toLowerCase()}${isReversed ? ", reversed" : ""}`);
    }

    #fill(name) {
        const menu = this.menus[name], [label, group] = menus[name], counts = new Map();
        for (const item of store.resources.values()) counts.set(group(item), (counts.get(group(item)) ?? 0) + 1);
        if (this.values[name] !== "" && !counts.has(this.values[name])) counts.set(this.values[name], 0);
        const names = [...counts.keys()].sort(text.compare), known = names.map(key => key + counts.get(key)).join(" ");
        if (menu.dataset.known === known && menu.options.length > 0) return;
        menu.dataset.known = known;
        menu.replaceChildren(new Option(label, ""), ...names.map(key =>
            new Option(`${key} (${number(counts.get(key))})`, key)));
        menu.value = this.values[name];
    }

    /// Shows the number of matches in an element.
    describe(element, count) {
        const all = store.resources.size, older = store.hiddenCount;
        setText(element, `${count === all ? "" : `${number(count)} of `}${number(all)} ${all === 1 ? "resource"
            : "resources"}${older > 0 ? ` (${number(older)} older ones are not listed)` : ""}`);
    }
}
