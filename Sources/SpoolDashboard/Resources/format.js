// Formats numbers, bytes, times and names in the browser's locale.

const cached = new Map();
const numbers = (options, name = JSON.stringify(options)) => {
    if (!cached.has(name)) cached.set(name, new Intl.NumberFormat(undefined, options));
    return cached.get(name);
};

const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
const scaled = (count, suffix, { smallest = 0, isRounded = false } = {}) => {
    let unit = smallest;
    count /= 1000 ** smallest;
    while (Math.abs(count) >= 999.5 && unit < units.length - 1) { count /= 1000; unit += 1; }
    const digits = unit === 0 || count === 0 || count >= 99.95 ? 0 : 1;
    return numbers({
        style: "unit", unit: units[unit] + suffix, maximumFractionDigits: digits,
        minimumFractionDigits: isRounded ? 0 : digits, unitDisplay: unit === 0 && suffix === "" ? "long" : "short",
    }, `${unit}${digits}${suffix}${isRounded}`).format(count);
};

export const number = count => numbers({}, "n").format(count);
export const compact = count => numbers({ notation: "compact", maximumFractionDigits: 1 }, "c").format(count);
export const bytes = count => count === null || count === undefined ? "–" : scaled(count, "");
export const rate = perSecond => scaled(perSecond, "-per-second", { smallest: 1 });
/// Rounded numbers on axes, such as “20 MB” instead of “20.0 MB”.
export const axisBytes = count => scaled(count, "", { isRounded: true });
export const axisRate = perSecond => scaled(perSecond, "-per-second", { smallest: 1, isRounded: true });

/// A share as a percentage, rounded down so that 100 % means complete.
export const percent = (part, whole) => !(whole > 0) ? "–"
    : numbers({ style: "percent", maximumFractionDigits: 0 }, "p").format(Math.floor(part / whole * 100) / 100);

export const plural = (count, one, other = `${one}s`) => `${number(count)} ${count === 1 ? one : other}`;

const duration = (value, unit, digits) => numbers({
    style: "unit", unit, maximumFractionDigits: digits, unitDisplay: "short",
}, unit + digits).format(value);

/// A duration in seconds, such as “120 ms” or “2.9 sec”.
export const seconds = value => value === null || value === undefined ? "–" : value < 0.9995
    ? duration(value * 1000, "millisecond", 0) : duration(value, "second", value < 99.95 ? 1 : 0);

/// A position in media, such as 1:02:03.
export const clock = value => {
    const whole = Math.floor(value), pad = part => String(part).padStart(2, "0");
    const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
    return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
};

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const steps = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [86400 * 30, "day", 86400],
    [86400 * 365, "month", 86400 * 30], [Infinity, "year", 86400 * 365]];

/// The time since a moment as text, such as “5 min. ago”. The moment is in milliseconds since 1970.
export const ago = (moment, now = Date.now()) => {
    const elapsed = Math.max(0, (now - moment) / 1000);
    if (elapsed < 10) return relative.format(0, "second");
    const [, unit, size] = steps.find(([limit]) => elapsed < limit);
    return relative.format(-Math.floor(elapsed / size), unit);
};

const dates = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const times = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const minutes = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
export const date = moment => dates.format(moment);
export const time = moment => times.format(moment);
export const minute = moment => minutes.format(moment);

/// A half-open range of bytes as inclusive positions, as in HTTP.
export const range = (start, end) => `${number(start)}–${end === null ? "" : number(end - 1)}`;

const decoded = text => {
    try {
        return decodeURIComponent(text);
    } catch {
        return text; // The path is not UTF-8.
    }
};

/// The text without control characters and characters that change its direction. Such characters could disguise the type
/// of a file. The names of downloads omit them, too.
const undisguised = text => text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, "");

/// The host, path and short name of a URL, for display. The name of a manifest includes its folder.
export const names = url => {
    const match = /^\w+:\/\/([^/]*)(\/.*)?$/.exec(url);
    const host = undisguised(match?.[1] ?? ""), path = undisguised(decoded(match?.[2] ?? url));
    const parts = path.split("/").filter(Boolean);
    const last = parts.at(-1) ?? host;
    const isManifest = /\.(m3u8|mpd)$/i.test(last);
    return { host, path, name: isManifest && parts.length > 1 ? `${parts.at(-2)}/${last}` : last };
};

/// A message as a sentence: its first word starts with a capital letter, unless it is a name such as a host.
export const sentence = message => /^[a-z]+[ ,]/.test(message) ? message[0].toUpperCase() + message.slice(1) : message;

/// The type of a resource as a short text that starts with its kind, such as “Video (MP4)”.
export const typeName = resource => {
    if (resource.kind === "hls") return "HLS";
    if (resource.kind === "dash") return "DASH";
    const [type = "", subtype = ""] = (resource.contentType ?? "").split(";")[0].trim().toLowerCase().split("/");
    const plain = subtype.replace(/^x-/, "").replace(/^mpeg$/, type === "audio" ? "mp3" : "mpeg").split(".").at(-1);
    const name = plain.length > 4 ? plain : plain.toUpperCase();
    return type === "" ? "Unknown" : `${type[0].toUpperCase()}${type.slice(1)}${name ? ` (${name})` : ""}`;
};
