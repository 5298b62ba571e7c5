// Draws the charts of the last hour on a canvas, and shows the values at the pointer or the keyboard's position.
import { contextOf, drawSeparated, palette } from "./bytemap.js";
import { make, setText } from "./elements.js";
import { minute, time } from "./format.js";
import { addDrawing, requestFrame } from "./frames.js";

const chartHeight = 150, axisHeight = 20;

/// The smallest axis limit that exceeds a value by 4 %, and is 2, 4 or 10 times a power of ten. It is at least 10,000.
const limitAbove = value => {
    const half = Math.max(5000, value * 0.52), power = 10 ** Math.floor(Math.log10(half));
    return 2 * power * [1, 2, 5, 10].find(step => step * power >= half);
};

/// A chart of one or more series over time. The series are stacked areas or lines.
export class Chart {
    samples = [];
    #isDirty = true;
    #selected = null;

    /// - series: an array of `{label, color, value(sample)}`. The color is a custom property of the style sheet.
    ///   The value of a line can be `null`.
    /// - format: a function that formats a value. `axisFormat` formats the labels of the axis.
    /// - isStacked: whether to draw areas instead of lines.
    /// - limit: the fixed maximum of the values, or `null`.
    constructor({ title, series, format, axisFormat = format, isStacked = false, limit = null }) {
        Object.assign(this, { title, series, format, axisFormat, isStacked, limit });
        this.canvas = make("canvas", {
            class: "chart", role: "img", tabIndex: 0, onpointermove: event => this.#point(event.offsetX),
            onpointerleave: () => this.#select(null), onkeydown: event => this.#key(event),
            onblur: () => this.#select(null),
        });
        this.value = make("p", { class: "quiet chart-value", role: "status" });
        const legend = make("ul", { class: "legend" }, series.map(({ label, color }) => {
            const item = make("li", {}, label);
            item.style.setProperty("--key", `var(--${color})`);
            return item;
        }));
        this.element = make("figure", { class: "card" }, make("figcaption", { class: "chart-head" },
            make("h2", {}, title), legend), this.canvas, this.value);
        new ResizeObserver(() => this.#redraw()).observe(this.canvas);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#redraw());
        addDrawing(() => this.#draw());
    }

    /// Replaces the samples. `summary` is the text below the chart, and its accessible name.
    show(samples, summary) {
        // A line needs two points, even for the first interval.
        this.samples = samples.length === 1 ? [samples[0], samples[0]] : samples;
        this.summary = summary;
        this.canvas.setAttribute("aria-label", `${this.title}. ${summary}`);
        if (this.#selected === null) setText(this.value, summary);
        this.#redraw();
    }

    #redraw() {
        this.#isDirty = true;
        requestFrame();
    }

    #point(x) {
        this.#select(Math.round(x / this.canvas.clientWidth * (this.samples.length - 1)));
    }

    #key(event) {
        const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
        const move = moves[event.key];
        if (move === undefined) return;
        event.preventDefault();
        this.#select((this.#selected ?? this.samples.length - 1) + move);
    }

    #select(index) {
        const last = this.samples.length - 1;
        this.#selected = index === null || last < 0 ? null : Math.min(last, Math.max(0, index));
        const sample = this.samples[this.#selected];
        const describe = ({ label, value }) => `${label} ${this.format(value(sample))}`;
        setText(this.value, !sample ? this.summary ?? ""
            : `${time(sample.time)}: ${this.series.map(describe).join(", ")}`);
        this.#redraw();
    }

    #draw() {
        const width = this.canvas.clientWidth;
        if (!this.#isDirty || width === 0) return false;
        this.#isDirty = false;
        const color = palette(), context = contextOf(this.canvas, width, chartHeight + axisHeight);
        const style = getComputedStyle(document.documentElement), { samples } = this;
        const top = samples.map(sample => this.isStacked
            ? this.series.reduce((sum, { value }) => sum + value(sample), 0)
            : Math.max(...this.series.map(({ value }) => value(sample) ?? 0)));
        const limit = this.limit ?? limitAbove(Math.max(0, ...top));
        const x = index => samples.length < 2 ? 0 : index / (samples.length - 1) * width;
        const y = value => chartHeight - value / limit * (chartHeight - 14);
        context.font = "11px system-ui, sans-serif";
        for (const part of [0, 0.5, 1]) {
            context.fillStyle = color.rule;
            context.fillRect(0, Math.round(y(limit * part)), width, 1);
        }
        let base = samples.map(() => 0);
        for (const { color: name, value } of this.series) {
            const values = samples.map((sample, index) => this.isStacked ? value(sample) + base[index] : value(sample));
            context.fillStyle = context.strokeStyle = style.getPropertyValue(`--${name}`).trim();
            context.beginPath();
            values.forEach((each, index) => {
                if (each === null) return;
                if (index === 0 || values[index - 1] === null) context.moveTo(x(index), y(each));
                else context.lineTo(x(index), y(each));
            });
            if (this.isStacked) {
                for (let index = values.length - 1; index >= 0; index -= 1) context.lineTo(x(index), y(base[index]));
                context.fill();
                base = values;
            } else {
                context.lineWidth = 2;
                context.lineJoin = "round";
                context.stroke();
            }
        }
        context.fillStyle = color.quiet;
        context.textAlign = "left";
        // The background of the labels separates them from the areas.
        context.strokeStyle = color.card;
        context.lineWidth = 3;
        context.lineJoin = "round";
        for (const part of [0.5, 1]) {
            const label = [this.axisFormat(limit * part), 2, y(limit * part) - 3];
            context.strokeText(...label);
            context.fillText(...label);
        }
        if (samples.length > 1) {
            const label = samples.at(-1).time - samples[0].time < 300_000 ? time : minute;
            const middle = samples.length > 2 ? [[samples.length >> 1, "center"]] : [];
            let previous = "";
            for (const [index, align] of [[0, "left"], ...middle, [samples.length - 1, "right"]]) {
                const text = label(samples[index].time);
                context.textAlign = align;
                // The first interval starts and ends at the same time.
                const place = align === "center" ? width / 2 : x(index);
                if (text !== previous) context.fillText(text, place, chartHeight + 15);
                previous = text;
            }
        }
        if (this.#selected !== null) {
            drawSeparated(context, "ink", Math.round(x(this.#selected) - 0.5), 0, 1, chartHeight);
        }
        return false;
    }
}
