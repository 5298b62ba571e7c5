// The selected resources of the library, and the toolbar with the actions for them.
import * as actions from "./actions.js";
import { button, make, setText } from "./elements.js";
import { bytes, number } from "./format.js";
import { announce } from "./messages.js";
import { store } from "./store.js";

export class Selection {
    keys = new Set();
    #anchor = null;

    /// - grid(): returns the list.
    /// - remove(resources): removes resources, and moves the focus.
    constructor(grid, remove) {
        this.grid = grid;
        this.all = make("input", {
            type: "checkbox", "aria-label": "Select all", onchange: () => this.setAll(this.all.checked),
        });
        this.text = make("p");
        this.bar = make("div", {
            class: "selection card", role: "group", "aria-label": "Selected resources", hidden: true,
        }, this.text, button("Pin", () => actions.pin(this.resources)),
        button("Unpin", () => actions.unpin(this.resources)), button("Verify", () => actions.verify(this.resources)),
        button("Preload …", () => actions.preloadStored(this.resources)),
        button("Download", () => actions.download(this.resources)),
        button("Remove …", () => remove(this.resources), "danger"), button("Clear", () => {
            this.setAll(false);
            this.grid().focus(this.grid().activeKey);
        }));
        new ResizeObserver(() => this.#uncover()).observe(this.bar);
    }

    /// Scrolls the row with the focus so that the toolbar does not cover it, and reserves space for later scrolling.
    #uncover() {
        const height = this.bar.offsetHeight;
        document.documentElement.style.scrollPaddingBlockEnd = height > 0 ? `calc(${height}px + 1rem)` : "";
        if (height > 0) document.activeElement?.closest(".rows [role=row]")?.scrollIntoView({ block: "nearest" });
    }

    get resources() {
        return [...this.keys].map(key => store.resources.get(key)).filter(Boolean);
    }

    /// Selects or deselects a row. With `isRange`, selects all rows from the previously selected row to this row.
    toggle(key, isRange = false) {
        const start = isRange && this.#anchor !== null ? this.grid().indexOf(this.#anchor) : -1;
        if (start >= 0) {
            this.extend(start, this.grid().indexOf(key));
            return;
        }
        if (!this.keys.delete(key)) this.keys.add(key);
        this.#anchor = key;
        this.show();
        announce(`${number(this.keys.size)} selected`);
    }

    extend(from, to) {
        const { items } = this.grid();
        for (let index = Math.max(0, Math.min(from, to)); index <= Math.max(from, to); index += 1) {
            this.keys.add(items[index].key);
        }
        this.show();
    }

    setAll(isSelected) {
        this.keys = new Set(isSelected ? this.grid().items.map(({ key }) => key) : []);
        this.show();
    }

    /// Updates the text that shows the number of selected resources.
    describe() {
        const list = this.resources, stored = list.reduce((sum, { storedBytes }) => sum + storedBytes, 0);
        setText(this.text, list.length === 0 ? "" : `${number(list.length)} selected, ${bytes(stored)}`);
    }

    show() {
        for (const key of this.keys) {
            if (!store.resources.has(key)) this.keys.delete(key);
        }
        const list = this.resources;
        this.bar.hidden = list.length === 0;
        this.describe();
        const { items } = this.grid();
        this.all.checked = items.length > 0 && items.every(({ key }) => this.keys.has(key));
        this.all.indeterminate = list.length > 0 && !this.all.checked;
        this.grid().refill();
    }
}
