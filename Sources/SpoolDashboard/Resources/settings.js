// The view of the settings, and the input field for the operator's token.
import * as actions from "./actions.js";
import * as api from "./api.js";
import { button, card, facts, make, setText } from "./elements.js";
import { bytes, date, number, plural } from "./format.js";
import { openDialog, toast } from "./messages.js";
import { store } from "./store.js";

const known = {
    capacity: ["Capacity", "The maximum size of the cache, such as 50 GB. Empty means no limit.", "size"],
    eviction: ["Eviction policy", "The order of eviction when space is needed. Pinned media is never evicted."],
    freshness: ["Freshness", "When stored responses may be used without revalidation."],
    allowedHosts: ["Allowed hosts", "The origins that clients may request, such as media.example.com or "
        + "*.example.com. Empty means all public origins. A change applies until the server stops."],
    maxAge: ["Maximum age", "Evicts media that has not been played for this time.", "time"],
    keepFree: ["Free space", "The free space to leave on the volume.", "size"],
    quotas: ["Quotas", "The maximum number of stored bytes of each host."],
};
/// The options of `spool serve` for settings that can't be changed while the server is running.
const options = {
    capacity: "--capacity", eviction: "--eviction", freshness: "--freshness", allowedHosts: "--allow-host",
    maxAge: "--max-age", keepFree: "--keep-free", quotas: "--quota",
};
const sources = { commandLine: "set on the command line", default: "default", page: "changed on this page" };
const policies = {
    standard: "standard", lru: "least recently used first (lru)", largest: "largest first (largest)",
    never: "no eviction (never)", http: "as in HTTP (http)", immutable: "always use stored bytes (immutable)",
    revalidate: "revalidate once for each playback (revalidate)",
};

/// Parses a size such as “50 GB” into bytes. Returns `null` for an empty string, and `undefined` if it is invalid.
export const parseSize = text => {
    if (text.trim() === "") return null;
    const match = /^([\d.,]+)\s*(k|m|g|t)?i?b?(ytes)?$/i.exec(text.trim());
    const value = Number(match?.[1].replace(",", "."));
    if (!match || !Number.isFinite(value)) return undefined;
    const isBinary = /[kmgt]ib/i.test(text), power = " kmgt".indexOf((match[2] ?? " ").toLowerCase());
    return Math.round(value * (isBinary ? 1024 : 1000) ** power);
};

/// The shortest exact text of a size, which `parseSize` parses.
const sizeText = count => {
    if (count === null) return "";
    const [unit, size] = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, each]) =>
        count >= each && count * 1000 % each === 0) ?? ["B", 1];
    return `${count / size} ${unit}`;
};

/// A duration in whole days, hours or seconds.
const timeText = seconds => seconds % 86_400 === 0 ? plural(seconds / 86_400, "day")
    : seconds % 3600 === 0 ? plural(seconds / 3600, "hour") : plural(seconds, "second");

export class SettingsView {
    constructor(section) {
        this.token = make("input", { type: "password", id: "token", autocomplete: "off", spellcheck: false });
        this.tokenState = make("p", { role: "status" });
        this.forget = button("Remove the token", () => api.setToken(null));
        this.list = make("div", { class: "stack" });
        this.server = make("div");
        section.classList.add("stack");
        section.append(card("Operator’s token",
            make("p", { class: "quiet" }, "Changes require this token; reading does not. The browser stores it for ",
                "this tab only, and never in a cookie. The server stores it in the file ",
                make("code", {}, "operator-token"), " in the cache directory."),
            make("form", { class: "row-of", onsubmit: event => this.#submitToken(event) },
                make("label", { for: "token" }, "Token"), this.token,
                make("button", { type: "submit", class: "primary" }, "Use the token"), this.forget), this.tokenState),
        card("Cache", this.list), card("Server", this.server));
        addEventListener("spool-token", () => this.#showToken());
        this.#showToken();
    }

    set isShown(value) {
        if (value) this.#load();
    }

    async #submitToken(event) {
        event.preventDefault();
        const value = this.token.value.trim();
        if (value === "") return;
        try {
            if (await api.isValid(value)) {
                api.setToken(value);
                this.token.value = "";
                toast("The server accepted the token.");
            } else {
                setText(this.tokenState, "The server rejected the token.");
            }
        } catch (error) {
            setText(this.tokenState, error.message);
        }
    }

    #showToken() {
        const hasToken = Boolean(api.token());
        setText(this.tokenState, hasToken ? "This tab has a token."
            : "This tab has no token. It can’t change anything.");
        this.forget.hidden = !hasToken;
    }

    async #load() {
        try {
            const { canChange, settings } = await api.settings();
            this.list.replaceChildren(...settings.map(setting => this.#setting(setting, canChange)));
        } catch (error) {
            this.list.replaceChildren(make("p", { class: "empty", role: "alert" }, error.message));
        }
        const { totals } = store;
        const address = api.serverAddress().replace(/\/~[^/]+/, "/~…"); // Without the token in the path.
        this.server.replaceChildren(facts([["Address", make("code", {}, address)],
            totals && ["Version", totals.version],
            totals && ["Running since", date(Date.parse(totals.started))],
            totals && ["Evictions", `${number(totals.evictions)}, ${bytes(totals.evictedBytes)}`]]));
    }

    #setting({ name, value, source, editable, choices }, canChange) {
        const [label, hint, kind] = known[name] ?? [name, ""], id = `setting-${name}`;
        const mayChange = editable && canChange && source !== "commandLine";
        const origin = make("span", { class: source === "default" ? "tag" : "tag good" }, sources[source] ?? source);
        const head = make("div", { class: "row-of" }, mayChange ? make("label", { for: id }, make("strong", {}, label))
            : make("strong", {}, label), origin);
        const text = Array.isArray(value) ? value.join(", ") : value === null ? ""
            : kind === "size" ? sizeText(value) : kind === "time" ? timeText(value) : String(value);
        if (!mayChange) {
            const none = name === "allowedHosts" ? "all public origins" : "none";
            const shown = text === "" ? none : policies[text] ?? text;
            const more = canChange && options[name] ? [" To change it, restart the server with the option ",
                make("code", {}, options[name]), "."] : [];
            return make("div", { class: "setting" }, head, make("p", {}, shown),
                make("p", { class: "quiet" }, hint, more));
        }
        const input = choices ? make("select", { id, "aria-describedby": `${id}-hint` }, choices.map(choice =>
            new Option(policies[choice] ?? choice, choice, false, choice === value)))
            : make("input", { id, value: text, "aria-describedby": `${id}-hint`, spellcheck: false });
        const submit = make("button", { type: "submit", "aria-label": `Change ${label}` }, "Change");
        return make("form", { class: "setting", onsubmit: event => {
            event.preventDefault();
            this.#change(name, label, kind, input);
        } }, head, make("div", { class: "row-of" }, input, submit),
        make("p", { class: "quiet", id: `${id}-hint` }, hint));
    }

    async #change(name, label, kind, input) {
        const text = input.value.trim();
        let value = text === "" ? null : text;
        if (kind === "size") value = parseSize(text);
        if (name === "allowedHosts") value = text.split(/[\s,]+/).filter(Boolean);
        input.setCustomValidity(value === undefined ? "Enter a size such as 50 GB." : "");
        if (!input.reportValidity()) return;
        input.addEventListener("input", () => input.setCustomValidity(""), { once: true });
        if (!await this.#confirms(name, label, value)) return;
        const response = await actions.perform({ action: "set", name, value }, () => `${label} changed.`);
        if (response) this.#load();
    }

    /// Requests a confirmation if the change can evict media.
    async #confirms(name, label, value) {
        const stored = store.totals?.storedBytes ?? 0;
        const isLess = name === "capacity" && value !== null && value < stored;
        if (!isLess) return true;
        if (!await actions.requireToken()) return false;
        return openDialog(`Change ${label.toLowerCase()}?`, make("p", {},
            `${bytes(stored)} are stored. To reach the new capacity, Spool will evict at least ${bytes(stored - value)}.`,
            " Pinned media is not evicted."), { submit: "Change", isDangerous: true });
    }
}
