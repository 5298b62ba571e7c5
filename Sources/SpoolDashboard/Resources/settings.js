// The view of the settings, and the input field for the operator's token.
import * as actions from "./actions.js";
import * as api from "./api.js";
import { button, card, facts, make, setText } from "./elements.js";
import { bytes, date, number, plural } from "./format.js";
import { openDialog, toast } from "./messages.js";
import { store } from "./store.js";

/// For each setting: its label, its meaning, the kind of its value, and the text for an empty value.
const known = {
    capacity: ["Capacity", "The maximum size of the cache.", "size", "no limit"],
    eviction: ["Eviction policy", "The order of eviction when space is needed. Pinned media is never evicted.",
        "policy"],
    freshness: ["Freshness", "When stored responses may be used without revalidation.", "policy"],
    allowedHosts: ["Allowed hosts", "The origins that clients may request.", "hosts", "all public origins"],
    maxAge: ["Maximum age", "Media that has not been played for this long is evicted.", "time", "no limit"],
    keepFree: ["Free space", "The space to leave free on the volume.", "size", "no minimum"],
    quotas: ["Quotas", "The maximum number of stored bytes from each host.", "quotas", "no quotas"],
};
/// The hints for inputs.
const inputHints = {
    capacity: "Enter a size such as 50 GB, or leave the field empty for no limit. The capacity also "
        + "applies after a restart.",
    allowedHosts: "Enter hosts such as media.example.com or *.example.com, or leave the field empty for all public "
        + "origins. The change applies until the server stops.",
};
const sources = {
    commandLine: "set on the command line", default: "default", page: "changed on this page",
    directory: "recorded in the cache directory",
};
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
    // “1,000” may be a thousand or one, depending on the language.
    if (!match || !Number.isFinite(value) || /,\d{3}$|\.\d\d0$/.test(match[1])) return undefined;
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

/// A quota of the form `HOST=BYTES`.
const quotaText = quota => {
    const end = quota.lastIndexOf("=");
    return `${quota.slice(0, end)}: ${sizeText(Number(quota.slice(end + 1)))}`;
};

/// The text of a value, or an empty text if there is none.
const valueText = (kind, value) => {
    if (value === null || kind === "size" && value === 0) return "";
    if (Array.isArray(value)) return value.map(each => kind === "quotas" ? quotaText(each) : each).join(", ");
    return kind === "size" ? sizeText(value) : kind === "time" ? timeText(value) : String(value);
};

/// The sentences that state how to change a setting that this page can't change.
const advice = ({ source, editable, choices, option }) => {
    if (editable || !option) return [];
    const restart = [make("code", {}, option), ". To change it, restart the server with another value."];
    const values = choices ? [" Values: ", ...choices.flatMap((choice, index) =>
        [index > 0 && ", ", make("code", {}, choice)]), "."] : [];
    return source === "commandLine" ? [" The command line sets it with ", ...restart, ...values]
        : [" This setting can’t be changed while the server runs. To change it, restart the server with ",
            make("code", {}, option), ".", ...values];
};

/// A duration in whole days, hours or seconds.
const timeText = seconds => seconds % 86_400 === 0 ? plural(seconds / 86_400, "day")
    : seconds % 3600 === 0 ? plural(seconds / 3600, "hour") : plural(seconds, "second");

export class SettingsView {
    #isShown = false;
    /// Whether the connection was lost, or loading failed, since the settings were last loaded.
    #isOutdated = false;

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
        store.addEventListener("list", () => this.#isShown && this.#showServer());
        store.addEventListener("connection", () => this.#reload());
        this.#showToken();
    }

    set isShown(value) {
        this.#isShown = value;
        if (!value) return;
        this.#showServer();
        this.#load();
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

    /// Loads the settings again when the connection returns. Does nothing while a setting is being edited.
    #reload() {
        if (!store.isConnected) this.#isOutdated = true;
        else if (this.#isShown && this.#isOutdated && !this.list.contains(document.activeElement)) this.#load();
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
            const rows = settings.map(setting => this.#setting(setting, canChange));
            if (!canChange) {
                rows.unshift(make("p", {}, "This server does not allow changes, because it has no operator’s token."));
            }
            this.list.replaceChildren(...rows);
            this.#isOutdated = false;
        } catch (error) {
            this.#isOutdated = true;
            this.list.replaceChildren(make("p", { class: "empty", role: "alert" }, error.message));
        }
    }

    #showServer() {
        const { totals } = store;
        this.server.replaceChildren(facts([["Address", make("code", {}, api.shownAddress())],
            totals && ["Version", totals.version],
            totals && ["Running since", date(Date.parse(totals.started))],
            totals && ["Evictions", totals.evictions === 0 ? "none"
                : `${number(totals.evictions)}, ${bytes(totals.evictedBytes)}`]]));
    }

    #setting(setting, canChange) {
        const { name, value, source, editable, choices } = setting;
        const [label, meaning, kind, none = "none"] = known[name] ?? [name, ""], id = `setting-${name}`;
        const mayChange = editable && canChange;
        const origin = make("span", { class: source === "default" ? "tag" : "tag good" }, sources[source] ?? source);
        const head = make("div", { class: "row-of" }, mayChange ? make("label", { for: id }, make("strong", {}, label))
            : make("strong", {}, label), origin);
        const text = kind === "size" && value === 0 && mayChange ? sizeText(0) : valueText(kind, value);
        if (!mayChange) {
            const shown = text === "" ? none : policies[text] ?? text;
            return make("div", { class: "setting" }, head, make("p", {}, shown),
                make("p", { class: "quiet" }, meaning, advice(setting)));
        }
        const input = choices ? make("select", { id, "aria-describedby": `${id}-hint` }, choices.map(choice =>
            new Option(policies[choice] ?? choice, choice, false, choice === value)))
            : make("input", {
                id, value: text, placeholder: none, "aria-describedby": `${id}-hint`, spellcheck: false,
            });
        const submit = make("button", { type: "submit", "aria-label": `Change ${label}` }, "Change");
        return make("form", { class: "setting", onsubmit: event => {
            event.preventDefault();
            this.#change(name, label, kind, input);
        } }, head, make("div", { class: "row-of" }, input, submit),
        make("p", { class: "quiet", id: `${id}-hint` }, meaning, " ", inputHints[name]));
    }

    async #change(name, label, kind, input) {
        const text = input.value.trim();
        let value = text === "" ? null : text;
        if (kind === "size") value = parseSize(text);
        if (name === "allowedHosts") value = text.split(/[\s,]+/).filter(Boolean);
        input.setCustomValidity(value === undefined ? "Enter a size such as 50 GB." : "");
        input.addEventListener("input", () => input.setCustomValidity(""), { once: true });
        if (!input.reportValidity()) return;
        if (!await this.#confirms(name, label, value)) return;
        const response = await actions.perform({ action: "set", name, value }, () => `${label} changed.`);
        if (response) this.#load();
    }

    /// Prompts for a confirmation if the change can evict media.
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
