// The large map of one resource: bytes or files of a stream, axes of bytes and time, and the playhead.
import { contextOf, describe, drawMap, drawSeparated, drawTrack, extent, palette } from "./bytemap.js";
import { make, setText } from "./elements.js";
import { axisBytes, bytes, clock, percent, rate } from "./format.js";
import { addDrawing, requestFrame } from "./frames.js";
import { store } from "./store.js";

const bandTop = 24, bandHeight = 56, fileGap = 1;

/// The first step, such as 1, 2 or 5 times a power of ten, that divides the extent into at most `count` parts.
const stepOf = (total, count, candidates) => candidates.find(step => total / step <= count) ?? candidates.at(-1);
const byteSteps = Array.from({ length: 40 }, (_, index) => [1, 2, 5][index % 3] * 10 ** Math.floor(index / 3));
const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 86400];

export class LargeMap {
    #removeDrawing = null;
    #isDirty = true;

    /// - media(): the media element of the page, or `null`.
    constructor(media) {
        this.media = media;
        this.canvas = make("canvas", { role: "img", class: "large-map", onclick: event => this.#seek(event) });
        this.legend = make("ul", { class: "legend" }, [["stored", "stored"], ["arriving", "being received"],
            ["reader", "being read"], ["waiting", "reader is waiting"], ["evicted", "just evicted"]]
            .map(([name, label]) => make("li", { class: `key-${name}` }, label)));
        this.state = make("p", { class: "quiet" });
        this.element = make("figure", { class: "map-figure" }, this.canvas,
            make("figcaption", {}, this.state, this.legend));
        new ResizeObserver(() => this.#redraw()).observe(this.canvas);
        store.addEventListener("update", () => this.#redraw());
    }

    /// Shows a resource with its details, or nothing if `resource` is `null`.
    show(resource) {
        this.resource = resource;
        if (resource && !this.#removeDrawing) this.#removeDrawing = addDrawing(now => this.#draw(now));
        if (!resource) {
            this.#removeDrawing?.();
            this.#removeDrawing = null;
        }
        this.#redraw();
    }

    #redraw() {
        this.#isDirty = true;
        if (this.resource) requestFrame();
    }

    #seek(event) {
        const media = this.media(), { duration } = this.resource;
        if (!media || !duration) return;
        media.currentTime = Math.max(0, event.offsetX / this.canvas.clientWidth * duration);
        this.#redraw();
    }

    #draw(now) {
        const media = this.media();
        const isPlaying = media && !media.paused && !media.ended;
        if (!this.#isDirty && !isPlaying && !this.moves) return false;
        this.#isDirty = false;
        const width = this.canvas.clientWidth, { duration, parts } = this.resource;
        if (width === 0) return false;
        const hasTime = Boolean(duration) && this.resource.kind === "file";
        const folders = grouped(parts), isOneFolder = folders.size === 1;
        const height = bandTop + bandHeight + (hasTime ? 44 : isOneFolder ? 6 : 26);
        this.canvas.style.blockSize = `${height}px`;
        const context = contextOf(this.canvas, width, height), band = { top: bandTop, width, height: bandHeight };
        context.font = "11px system-ui, sans-serif";
        if (parts.length > 0) {
            this.moves = this.#drawParts(context, folders, band, now);
        } else {
            this.moves = drawMap(context, this.resource, band, now);
            this.#rates(context, width);
            this.#axis(context, width, bandTop + bandHeight, extent(this.resource), byteSteps, axisBytes);
            if (hasTime) this.#axis(context, width, bandTop + bandHeight + 20, duration, timeSteps, clock);
        }
        if (media && duration) this.#playhead(context, media.currentTime / duration * width);
        this.#describe();
        return this.moves || isPlaying;
    }

    /// Draws the files of a stream next to each other, in groups by folder, such as one for each rendition.
    #drawParts(context, folders, { top, width, height }, now) {
        const color = palette();
        const rowHeight = height / folders.size, gap = folders.size > 1 && rowHeight > 6 ? 3 : 0;
        // A request for a file of a stream may be listed under the key of the stream.
        const received = new Set((store.transfers.get(this.resource.key) ?? []).map(({ url }) => url));
        let row = 0, moves = false;
        for (const [, files] of folders) {
            const step = width / files.length, inner = Math.max(0.5, step - (step > 4 ? fileGap : 0));
            files.forEach((file, index) => {
                context.save();
                context.translate(index * step, 0);
                const box = { top: top + row * rowHeight, width: inner, height: Math.max(1, rowHeight - gap) };
                const isReceived = received.has(file.url);
                if (store.transfers.has(file.key) || store.readers.has(file.key)) {
                    moves = drawMap(context, file, box, now) || moves;
                } else {
                    drawTrack(context, box.top, inner, box.height);
                    context.fillStyle = color.arriving;
                    if (isReceived) context.fillRect(0, box.top, inner, box.height);
                    context.fillStyle = color.stored;
                    const share = file.complete ? 1 : file.storedBytes / (file.length || Infinity);
                    context.fillRect(0, box.top, inner * share, box.height);
                }
                context.restore();
            });
            row += 1;
        }
        if (folders.size === 1) return moves;
        context.fillStyle = color.quiet;
        context.textAlign = "start";
        context.fillText(`From top to bottom: ${[...folders.keys()].slice(0, 6).join(", ")}`, 0, top + height + 15);
        return moves;
    }

    #axis(context, width, top, total, steps, format) {
        const color = palette(), step = stepOf(total, Math.max(2, width / 90), steps);
        context.fillStyle = color.quiet;
        for (let value = 0; value <= total; value += step) {
            const x = value / total * width, label = format(value);
            context.fillStyle = color.grid;
            context.fillRect(Math.min(x, width - 1), top + 2, 1, 5);
            const labelWidth = context.measureText(label).width;
            if (x + labelWidth / 2 > width && value > 0) continue;
            context.fillStyle = color.quiet;
            context.textAlign = value === 0 ? "left" : "center";
            context.fillText(label, x, top + 17);
        }
    }

    /// Draws the rate of each request in progress above its position.
    #rates(context, width) {
        context.fillStyle = palette().quiet;
        let free = -Infinity;
        const transfers = [...store.transfers.get(this.resource.key) ?? []].sort((a, b) => a.drawn - b.drawn);
        for (const { drawn, bytesPerSecond } of transfers) {
            const label = rate(bytesPerSecond), labelWidth = context.measureText(label).width;
            const x = Math.min(width - labelWidth, Math.max(0, drawn / extent(this.resource) * width + 7));
            if (x < free) continue;
            context.textAlign = "left";
            context.fillText(label, x, bandTop - 7);
            free = x + labelWidth + 8;
        }
    }

    #playhead(context, x) {
        drawSeparated(context, "ink", Math.max(0, x - 1.5), 6, 3, bandTop + bandHeight);
        context.beginPath();
        context.arc(Math.max(5, x), 6, 5, 0, 7);
        context.fill();
    }

    #describe() {
        const { resource } = this, transfers = [resource, ...resource.parts].flatMap(({ key }) =>
            store.transfers.get(key) ?? []);
        const speed = transfers.reduce((sum, { bytesPerSecond }) => sum + bytesPerSecond, 0);
        const { kind, length, storedBytes, completeFiles, files } = resource;
        const stored = kind !== "file" ? `${bytes(storedBytes)} stored, ${completeFiles} of ${files} stored files complete`
            : length === null ? `${bytes(storedBytes)} stored`
                : `${bytes(storedBytes)} of ${bytes(length)} stored (${percent(storedBytes, length)})`;
        setText(this.state, transfers.length === 0 ? stored : `${stored} · receiving ${rate(speed)}`);
        const label = describe(resource);
        if (this.canvas.ariaLabel !== label) this.canvas.ariaLabel = label;
    }
}

const folder = ({ url }) => url.split("/").at(-2) ?? "";
const grouped = parts => {
    const groups = new Map();
    for (const part of parts) groups.set(folder(part), [...groups.get(folder(part)) ?? [], part]);
    return groups;
};
