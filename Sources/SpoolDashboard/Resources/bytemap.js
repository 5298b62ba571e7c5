// Draws the map of a resource's bytes: stored, being received, being read, and just evicted.
import { percent, plural } from "./format.js";
import { mayMove } from "./frames.js";
import { fadeMilliseconds, store } from "./store.js";

const colorNames = ["track", "stored", "arriving", "head", "evicted", "reader", "waiting", "grid"];
let colors = null;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colors = null; });

/// The colors of the style sheet for the current color scheme.
export const palette = () => {
    if (colors) return colors;
    const style = getComputedStyle(document.documentElement);
    colors = Object.fromEntries(colorNames.map(name => [name, style.getPropertyValue(`--map-${name}`).trim()]));
    for (const name of ["quiet", "ink", "rule", "card", "edge"]) {
        colors[name] = style.getPropertyValue(`--${name}`).trim();
    }
    return colors;
};

/// Adapts a canvas to its size on the page, and returns its context in CSS pixels.
export const contextOf = (canvas, width, height) => {
    const scale = devicePixelRatio || 1, context = canvas.getContext("2d");
    const pixelWidth = Math.round(width * scale), pixelHeight = Math.round(height * scale);
    if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) {
        canvas.width = pixelWidth;
        canvas.height = pixelHeight;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.direction = "ltr"; // Labels have units, such as “20 MB”.
    return context;
};

/// The number of bytes that the width of a map represents.
export const extent = resource => resource.length ?? Math.max(1, resource.ranges.at(-1)?.[1] ?? 1);

const paths = new WeakMap();

/// The cells of a stream's map: the width of each cell, and the number of filled cells.
const cellsOf = ({ files, completeFiles }, width) => {
    const cells = Math.max(1, Math.min(files, Math.floor(width / 4)));
    return { step: width / cells, filled: Math.floor(completeFiles / Math.max(1, files) * cells) };
};

/// The stored ranges as one path, which is reused until the resource or the width changes.
const storedPath = (resource, width, height) => {
    const known = paths.get(resource);
    if (known?.width === width && known.height === height) return known.path;
    const path = new Path2D();
    if (resource.kind === "file") {
        const scale = width / extent(resource);
        let edge = -1;
        for (const [start, end] of resource.ranges) {
            const from = Math.max(edge, start * scale), to = Math.max(end * scale, from + 1);
            if (to <= edge) continue;
            path.rect(from, 0, to - from, height);
            edge = to;
        }
    } else {
        // The files of a stream are cells of the same size. Complete files are first.
        const { step, filled } = cellsOf(resource, width);
        for (let cell = 0; cell < filled; cell += 1) path.rect(cell * step, 0, step - 1, height);
        if (filled === 0 && resource.storedBytes > 0) path.rect(0, 0, Math.max(1, step / 3), height);
    }
    paths.set(resource, { path, width, height });
    return path;
};

/// Draws the background of a map with its edge, which narrow cells have only above and below.
export const drawTrack = (context, top, width, height) => {
    const color = palette(), inset = width < 4 ? 0 : 1;
    context.fillStyle = color.edge;
    context.fillRect(0, top, width, height);
    context.fillStyle = color.track;
    context.fillRect(inset, top + 1, width - 2 * inset, height - 2);
};

/// Fills a rectangle. A line of the page's background on both sides separates it from rectangles of a similar color.
export const drawSeparated = (context, name, x, top, width, height) => {
    const color = palette();
    context.fillStyle = color.card;
    context.fillRect(x - 1, top, width + 2, height);
    context.fillStyle = color[name];
    context.fillRect(x, top, width, height);
};

/// The current position of a request in progress, which moves at its rate between two updates.
const advance = (entry, now, scale) => {
    if (!mayMove()) return entry.position;
    const since = Math.min(1, (now - entry.time) / 1000);
    const target = Math.min(entry.end ?? Infinity, entry.position + (entry.bytesPerSecond ?? 0) * since);
    const distance = target - entry.drawn;
    entry.drawn = Math.abs(distance) * scale > 40 || distance < 0 && entry.end !== undefined
        ? target : entry.drawn + distance * 0.2;
    return entry.drawn;
};

/// Draws a map in a rectangle that starts at (0, top). Returns whether the map moves and therefore needs the next
/// frame.
///
/// The height above `top` is for the marks of the readers.
export const drawMap = (context, resource, { top, width, height }, now) => {
    const color = palette(), scale = width / extent(resource);
    context.save();
    context.translate(0, top);
    drawTrack(context, 0, width, height);
    context.fillStyle = color.stored;
    context.fill(storedPath(resource, width, height));
    if (resource.kind !== "file") {
        const { step, filled } = cellsOf(resource, width);
        if (store.transfers.has(resource.key) && filled * step < width - 1) {
            context.fillStyle = color.arriving;
            context.fillRect(filled * step, 0, Math.max(2, step - 1), height);
        }
        context.restore();
        return false;
    }
    let moves = false;
    const markHeight = Math.min(top, 9);
    for (const { range: [start, end], time } of store.evictions.get(resource.key) ?? []) {
        const rest = fadeMilliseconds - (now - time);
        if (rest <= 0) continue;
        context.globalAlpha = mayMove() ? Math.min(1, rest / 1000) : 1;
        drawSeparated(context, "evicted", start * scale, 0, Math.max(2, (end - start) * scale), height);
        moves ||= mayMove();
    }
    context.globalAlpha = 1;
    for (const transfer of store.transfers.get(resource.key) ?? []) {
        const position = advance(transfer, now, scale), x = position * scale, from = transfer.start * scale;
        const end = (transfer.end ?? resource.length ?? position) * scale;
        drawSeparated(context, "arriving", from, 0, Math.max(2, x - from), height);
        context.fillRect(x, height - 2, Math.max(0, end - x), 2);
        drawSeparated(context, "head", Math.min(x, width - 2), 0, 2, height);
        moves ||= mayMove() && now - transfer.time < 1500;
    }
    for (const reader of store.readers.get(resource.key) ?? []) {
        const before = reader.drawn, x = Math.min(width - 1, Math.max(1, advance(reader, now, scale) * scale));
        drawSeparated(context, reader.isWaiting ? "waiting" : "reader", x - 1, -2, 2, height + 2);
        context.beginPath();
        context.moveTo(x - 4, -markHeight);
        context.lineTo(x + 4, -markHeight);
        context.lineTo(x, 5 - markHeight);
        context.fill();
        moves ||= mayMove() && Math.abs(reader.drawn - before) * scale > 0.05;
    }
    context.restore();
    return moves;
};

/// The description of a map as text.
export const describe = resource => {
    const transfers = store.transfers.get(resource.key)?.length ?? 0;
    const readers = store.readers.get(resource.key)?.length ?? 0;
    const share = resource.kind !== "file" ? `${resource.completeFiles} of ${resource.files} stored files complete`
        : resource.complete ? "complete" : resource.length > 0
            ? `${percent(resource.storedBytes, resource.length)} stored` : "length unknown";
    return [`Map of the bytes: ${share}`, transfers > 0 && `${plural(transfers, "request")} in progress`,
        readers > 0 && plural(readers, "reader")].filter(Boolean).join(", ");
};
