// A list of rows of equal height, which creates elements only for the visible rows, with the keyboard navigation of a
// grid.
import { addDrawing, requestFrame } from "./frames.js";

/// A grid that scrolls with the page. Each row is identified by the key of its item.
///
/// The element's custom property `--row-height` is the height of a row, in rem. The delegate has these functions:
/// `makeRow(item)` returns an object with `element`, `fillRow(row, item)` updates its texts, and
/// `drawRow(row, item, now)` draws the row and returns whether the drawing moves.
export class Grid {
    items = [];
    activeKey = null;
    #rows = new Map();
    #indexes = new Map();
    #needsLayout = true;
    #rowHeight = 0;
    #isVisible = true;

    constructor(element, delegate) {
        this.element = element;
        this.delegate = delegate;
        addDrawing(now => this.#frame(now));
        const update = () => this.layout();
        addEventListener("scroll", update, { passive: true });
        new ResizeObserver(() => {
            this.#rowHeight = 0;
            this.delegate.resized?.();
            this.layout();
        }).observe(element);
        element.addEventListener("keydown", event => this.#key(event));
        element.addEventListener("focusin", event => {
            const key = event.target.closest("[data-key]")?.dataset.key;
            if (key) this.#activate(key);
        });
    }

    setItems(items) {
        this.items = items;
        this.#indexes = new Map(items.map(({ key }, index) => [key, index]));
        if (!this.#indexes.has(this.activeKey)) this.activeKey = items[0]?.key ?? null;
        this.layout();
    }

    /// Replaces an item without changing the order.
    replace(item) {
        const index = this.#indexes.get(item.key);
        if (index === undefined) return;
        this.items[index] = item;
        if (this.#rows.has(item.key)) requestFrame();
    }

    set isVisible(value) {
        this.#isVisible = value;
        this.layout();
    }

    layout() {
        this.#needsLayout = true;
        requestFrame();
    }

    /// Updates the texts of all visible rows with the next frame.
    refill() {
        for (const row of this.#rows.values()) row.item = null;
        requestFrame();
    }

    indexOf(key) {
        return this.#indexes.get(key) ?? -1;
    }

    focus(key) {
        const index = this.#indexes.get(key);
        if (index === undefined) return;
        this.#activate(key);
        this.#place();
        const { element } = this.#rows.get(key);
        element.focus({ preventScroll: true });
        element.scrollIntoView({ block: "nearest" });
    }

    #activate(key) {
        const before = this.#rows.get(this.activeKey);
        if (before) before.element.tabIndex = -1;
        this.activeKey = key;
        const row = this.#rows.get(key);
        if (row) row.element.tabIndex = 0;
    }

    #key(event) {
        const index = this.#indexes.get(this.activeKey) ?? 0;
        const page = Math.max(1, Math.floor(innerHeight / (this.#rowHeight || 50)) - 4);
        const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
        const move = moves[event.key];
        const item = this.items[index];
        if (move !== undefined && item && !event.altKey) {
            const target = Math.min(this.items.length - 1, Math.max(0, index + move));
            event.preventDefault();
            this.focus(this.items[target].key);
            if (event.shiftKey) this.delegate.extend?.(index, target);
        } else if (item && this.delegate.key?.(event, item)) {
            event.preventDefault();
        }
    }

    #place() {
        this.#needsLayout = false;
        if (!this.#rowHeight) {
            const { fontSize } = getComputedStyle(document.documentElement);
            const height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row-height")) || 3.25;
            this.#rowHeight = height * parseFloat(fontSize);
        }
        const height = this.#rowHeight, { top } = this.element.getBoundingClientRect();
        this.element.style.blockSize = `${this.items.length * height}px`;
        const first = Math.max(0, Math.floor(-top / height) - 3);
        const last = Math.min(this.items.length, Math.ceil((innerHeight - top) / height) + 3);
        const wanted = this.items.slice(first, Math.max(first, last));
        const active = this.#indexes.get(this.activeKey);
        if (active !== undefined && active < first) wanted.unshift(this.items[active]);
        if (active !== undefined && active >= last) wanted.push(this.items[active]);

        const keys = new Set(wanted.map(({ key }) => key));
        for (const [key, row] of this.#rows) {
            if (keys.has(key)) continue;
            row.element.remove();
            this.#rows.delete(key);
        }
        let next = this.element.firstElementChild;
        for (const item of wanted) {
            let row = this.#rows.get(item.key);
            if (!row) {
                row = this.delegate.makeRow(item);
                row.element.dataset.key = item.key;
                this.#rows.set(item.key, row);
            }
            const index = this.#indexes.get(item.key);
            if (row.index !== index) {
                row.index = index;
                row.element.style.transform = `translateY(${index * height}px)`;
                row.element.setAttribute("aria-rowindex", index + 2);
            } else if (row.height !== height) {
                row.element.style.transform = `translateY(${index * height}px)`;
            }
            row.height = height;
            row.element.tabIndex = item.key === this.activeKey ? 0 : -1;
            if (row.element === next) next = next.nextElementSibling;
            else this.element.insertBefore(row.element, next);
        }
    }

    #frame(now) {
        if (!this.#isVisible) return false;
        if (this.#needsLayout) this.#place();
        let moves = false;
        for (const [key, row] of this.#rows) {
            const item = this.items[this.#indexes.get(key)];
            if (!item) continue;
            if (row.item !== item) {
                row.item = item;
                this.delegate.fillRow(row, item);
            }
            moves = this.delegate.drawRow?.(row, item, now) === true || moves;
        }
        return moves;
    }
}
