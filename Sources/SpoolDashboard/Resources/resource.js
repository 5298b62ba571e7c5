// The view of one resource: map, playback, waits, requests, files and stored headers.
import * as actions from "./actions.js";
import * as api from "./api.js";
import { button, card, copyable, facts, make, setText } from "./elements.js";
import { ago, bytes, date, names, plural, typeName } from "./format.js";
import { LargeMap } from "./largemap.js";
import { files, waits, waterfall } from "./requests.js";
import { store } from "./store.js";

export class ResourceView {
    #key = null;
    #media = null;
    #isLoading = false;
    #timer = null;

    constructor(section) {
        this.title = make("bdi");
        this.place = make("p", { class: "quiet breaks" });
        this.tags = make("p", { class: "row-of" });
        this.buttons = make("div", { class: "row-of" });
        this.map = new LargeMap(() => this.#media);
        this.player = make("div", { class: "player" });
        this.facts = make("div");
        this.waits = make("div");
        const scroller = (label, kind) => make("div", {
            class: `scroll ${kind}`, tabIndex: 0, role: "group", "aria-label": label,
        });
        this.requests = scroller("Requests to the origin", "");
        this.files = scroller("Files of the stream", "files");
        this.filesTitle = make("h2");
        this.parts = make("section", { class: "card stack", hidden: true }, this.filesTitle, this.files);
        this.headers = make("div");
        this.message = make("div", { class: "card welcome", hidden: true });
        this.content = make("div", { class: "stack" },
            make("div", { class: "card" }, this.map.element),
            make("div", { class: "columns" }, card("Playback", this.player), make("div", { class: "stack" },
                card("Details", this.facts), card("Why did playback wait?", this.waits))),
            card("Requests to the origin", this.requests), this.parts,
            card("Stored headers", this.headers));
        section.append(make("p", { class: "path" }, make("a", { href: "#/" }, "Library")),
            make("div", { class: "resource-head" },
                make("div", {}, make("h1", {}, this.title), this.place, this.tags), this.buttons),
            this.message, this.content);
        store.addEventListener("update", ({ detail }) => this.#update(detail));
        store.addEventListener("connection", () => store.isConnected && this.#key && this.#load());
    }

    /// Shows a resource, or stops playback and drawing if the key is `null`.
    show(key) {
        if (key === this.#key) return;
        this.#key = key;
        this.#setMedia(null);
        this.map.show(null);
        this.details = null;
        this.player.replaceChildren();
        this.content.hidden = true;
        if (key === null) return;
        const known = store.resources.get(key);
        setText(this.title, known?.name ?? "Resource");
        setText(this.place, "");
        this.tags.replaceChildren();
        this.buttons.replaceChildren();
        this.#load();
    }

    async #load() {
        if (this.#isLoading) return;
        this.#isLoading = true;
        const key = this.#key;
        try {
            const details = await api.resource(key);
            if (key === this.#key) this.#fill(details);
        } catch (error) {
            if (key === this.#key && (error.status === 404 || !this.details)) this.#fail(error);
        } finally {
            this.#isLoading = false;
        }
        if (this.#key !== null && key !== this.#key) this.#load();
    }

    #fail(error) {
        this.content.hidden = true;
        this.message.hidden = false;
        this.#setMedia(null);
        this.player.replaceChildren();
        this.tags.replaceChildren();
        this.buttons.replaceChildren();
        this.details = null;
        this.map.show(null);
        const title = error.status === 404 ? "This resource is not stored" : error.message;
        this.message.replaceChildren(make("h2", {}, title),
            make("p", {}, make("a", { href: "#/" }, "Show all resources")));
    }

    #update({ changed, transfers, removed, log }) {
        if (this.#key === null) return;
        if (!this.details) {
            // The resource may have been stored again.
            if (changed.some(({ key }) => key === this.#key)) this.#load();
            return;
        }
        const keys = new Set([this.#key, ...this.details.parts.map(({ key }) => key)]);
        if (removed.includes(this.#key)) return this.#fail({ status: 404 });
        const current = changed.find(({ key }) => key === this.#key);
        if (current) {
            this.details = { ...this.details, ...current };
            this.map.show(this.details);
            this.#fillHead();
        }
        // The tables are reloaded when the log changes or bytes are received, at most once per second.
        const isAffected = [...changed, ...transfers, ...log].some(({ key }) => keys.has(key));
        if (isAffected) {
            this.#timer ??= setTimeout(() => {
                this.#timer = null;
                if (this.#key && !document.hidden) this.#load();
            }, 1000);
        }
    }

    #fill(details) {
        const isFirst = !this.details, { name } = names(details.url);
        this.details = details;
        this.#addDuration();
        this.message.hidden = true;
        this.content.hidden = false;
        document.title = `${name} – Spool`;
        this.#fillHead();
        this.map.show(details);
        if (isFirst) this.#showPlayer(details);
        const isStream = details.kind !== "file";
        this.waits.replaceChildren(waits(details.waits, { empty: "No waits in the latest log entries." }));
        this.requests.replaceChildren(waterfall(details.requests, isStream));
        this.parts.hidden = details.parts.length === 0;
        if (!this.parts.hidden) {
            setText(this.filesTitle, `Files of the stream (${plural(details.parts.length, "file")})`);
            this.files.replaceChildren(files(details.parts));
        }
        const rows = Object.entries(details.headers);
        this.headers.replaceChildren(rows.length > 0 ? facts(rows)
            : make("p", { class: "empty" }, "No headers are stored."));
        const { state, until } = details.freshness, used = Date.parse(details.lastUsed);
        const parts = isStream ? plural(details.files, "file") : plural(details.ranges.length, "range");
        this.facts.replaceChildren(facts([
            ["URL", make("span", { dir: "ltr" }, details.url)], ["Type", details.contentType ?? "unknown"],
            !isStream && ["Size", details.length === null ? "unknown" : bytes(details.length)],
            ["Stored", `${bytes(details.storedBytes)} in ${parts}`], ["Last used", `${date(used)} (${ago(used)})`],
            ["Freshness", until === null ? state : `${state}, until ${date(Date.parse(until))}`],
            ["Validator", details.validator === null ? "none" : make("code", {}, details.validator)],
        ]));
    }

    #fillHead() {
        const { details } = this, { name, host, path } = names(details.url), list = [{ ...details, name, host }];
        setText(this.title, name);
        setText(this.place, host + path);
        this.tags.replaceChildren(make("span", { class: "tag" }, typeName(details)),
            details.kind === "file" ? make("span", { class: `tag ${details.complete ? "good" : ""}` },
                details.complete ? "complete" : "incomplete")
                : make("span", { class: "tag" }, `${details.completeFiles} of ${details.files} stored files complete`),
            ...details.pinned ? [make("span", { class: "tag good" }, "pinned")] : []);
        const state = `${details.pinned} ${details.complete}`;
        if (this.buttons.dataset.state === state && this.buttons.dataset.key === details.key
            && this.buttons.childElementCount > 0) return;
        Object.assign(this.buttons.dataset, { state, key: details.key });
        const hadFocus = this.buttons.contains(document.activeElement);
        this.buttons.replaceChildren(
            button(details.pinned ? "Unpin" : "Pin", async () => {
                await (details.pinned ? actions.unpin : actions.pin)(list);
                this.#load();
            }, "primary"),
            ...details.complete ? [] : [button("Preload …", () => actions.preload(details.url, details.pinned))],
            ...details.complete ? [make("a", {
                class: "button", href: api.contentPath(details.key), download: name,
            }, "Download")] : [],
            button("Verify", () => actions.verify(list)),
            button("Remove …", async () => {
                if (await actions.remove(list)) location.hash = "#/";
            }, "danger"));
        if (hadFocus) this.buttons.firstElementChild.focus();
    }

    // MARK: Playback

    #showPlayer(details) {
        const { mediaURL, contentType, kind } = details;
        const isAudio = contentType?.startsWith("audio/"), isVideo = contentType?.startsWith("video/");
        const copy = copyable(api.playerURL(details.url), {
            shown: api.playerURL(details.url, api.shownAddress()), label: "Copy the player’s URL",
        });
        if (mediaURL === null) {
            // The server does not report which of the two reasons applies.
            this.player.replaceChildren(make("p", { class: "empty" }, "This page can’t play the media, because the URL ",
                "contains a query, or the page has a separate address. Play the media in your player."));
            return;
        }
        const probe = document.createElement("video");
        if (kind !== "file" && probe.canPlayType(contentType ?? "") === "" || !isAudio && !isVideo && kind === "file") {
            const reason = kind === "file" ? "This type can’t be played."
                : "This browser can’t play the stream. Use its URL in a player:";
            this.player.replaceChildren(make("p", { class: "empty" }, reason), kind === "file" ? "" : copy);
            return;
        }
        const media = make(isAudio ? "audio" : "video", {
            controls: true, preload: "none", "aria-label": `Player for ${names(details.url).name}`,
        });
        media.src = mediaURL;
        if (isVideo) media.playsInline = true;
        media.addEventListener("durationchange", () => {
            if (this.#addDuration()) this.map.show(this.details);
        });
        for (const event of ["play", "seeking", "timeupdate"]) {
            media.addEventListener(event, () => this.map.show(this.details));
        }
        const failure = make("p", { class: "empty", role: "status" });
        media.addEventListener("error", () => setText(failure, "The browser can’t play this media."));
        this.#setMedia(media);
        this.player.replaceChildren(media, failure, copy);
    }

    /// Uses the player's duration if the server does not know it, for example of a stream. Returns whether it was added.
    #addDuration() {
        const duration = this.#media?.duration;
        if (!this.details || this.details.duration || !Number.isFinite(duration)) return false;
        this.details.duration = duration;
        return true;
    }

    #setMedia(media) {
        if (this.#media) {
            this.#media.pause();
            this.#media.removeAttribute("src");
            this.#media.load();
        }
        this.#media = media;
    }
}
