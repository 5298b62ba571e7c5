// Changes to the cache. Each change requires the operator's token, and a removal also requires a confirmation.
import * as api from "./api.js";
import { make } from "./elements.js";
import { bytes, plural } from "./format.js";
import { openDialog, toast } from "./messages.js";
import { store } from "./store.js";

/// Prompts for the operator's token, unless this tab has one. Returns whether a valid token is set.
export const requireToken = async (isRejected = false) => {
    if (api.token() && !isRejected) return true;
    const input = make("input", { type: "password", id: "token-in-dialog", required: true, autocomplete: "off" });
    const content = [
        make("p", { class: "quiet" }, "Changes require the operator’s token. The command spool serve prints a URL ",
            "with the token. It also stores the token in the file ", make("code", {}, "operator-token"),
            " in the cache directory."),
        isRejected && make("p", { role: "alert" }, "The server rejected the token."),
        make("div", { class: "field" }, make("label", { for: input.id }, "Operator’s token"), input),
    ].filter(Boolean);
    if (!await openDialog("Operator’s token", content, { submit: "Continue" })) return false;
    try {
        if (!await api.isValid(input.value.trim())) return requireToken(true);
    } catch (error) {
        toast(error.message);
        return false;
    }
    api.setToken(input.value.trim());
    return true;
};

/// Sends an action. Shows its results as a message, and its failures as a list. Returns the response, or `null`.
export const perform = async (body, summary) => {
    if (!await requireToken()) return null;
    for (;;) {
        try {
            const response = await api.act(body);
            const failures = response.results.filter(({ ok }) => !ok);
            const succeeded = response.results.length - failures.length;
            if (succeeded > 0 && summary) toast(summary(succeeded, response));
            if (failures.length > 0) {
                const title = body.action === "set" ? "The setting was not changed"
                    : `The action failed for ${plural(failures.length, "resource")}`;
                await openDialog(title, make("ul", {},
                    failures.slice(0, 50).map(({ url, message }) => make("li", {}, [url, message].filter(Boolean)
                        .join(": ")))), { submit: "Close", cancel: null });
            }
            return response;
        } catch (error) {
            if (error.status === 401) {
                api.setToken(null);
                if (await requireToken(true)) continue;
                return null;
            }
            toast(error.message);
            return null;
        }
    }
};

const keys = list => list.map(({ key }) => key);
const total = list => list.reduce((sum, { storedBytes }) => sum + storedBytes, 0);

export const pin = list => perform({ action: "pin", keys: keys(list) },
    count => `Pinned ${plural(count, "resource")}. Pinned media is never evicted.`);

/// Unpins resources. Asks for confirmation if the cache exceeds its capacity, because they may then be evicted.
export const unpin = async list => {
    const pinned = list.filter(resource => resource.pinned);
    const { storedBytes, capacityBytes = null } = store.totals ?? {};
    if (pinned.length > 0 && capacityBytes !== null && storedBytes > capacityBytes) {
        const content = make("p", {}, `The cache stores ${bytes(storedBytes)}, but its capacity is ${bytes(capacityBytes)}. `,
            `Spool may evict the media (${bytes(total(pinned))}) as soon as it is unpinned. `,
            "If the media is played later, Spool fetches it again.");
        const title = `Unpin ${plural(pinned.length, "resource")}?`;
        if (!await requireToken()) return null;
        if (!await openDialog(title, content, { submit: "Unpin", isDangerous: true })) return null;
    }
    return perform({ action: "unpin", keys: keys(list) }, count => `Unpinned ${plural(count, "resource")}.`);
};

export const verify = list => perform({ action: "verify", keys: keys(list) }, (count, { results }) => count === 1
    ? `Verified: ${results[0].message}` : `Verified ${plural(count, "resource")}. Any damaged blocks were discarded.`);

/// A warning for the confirmation of a removal, if players are using some of the resources.
const useWarning = list => {
    const count = list.reduce((sum, { key }) => sum + (store.readers.get(key)?.length ?? 0), 0);
    return count > 0 && make("p", {}, make("span", { class: "tag warn" }, `in use by ${plural(count, "reader")}`),
        " Playback of stored bytes continues. Playback of bytes that are not stored yet stops with an error.");
};

/// Removes resources after a confirmation. Returns whether they were removed.
export const remove = async list => {
    const pinned = list.filter(resource => resource.pinned).length;
    const content = [
        make("p", {}, `${bytes(total(list))} will be removed from the cache. `,
            "If the media is played later, Spool fetches it again."),
        pinned > 0 && make("p", {},
            make("span", { class: "tag warn" }, `includes ${plural(pinned, "pinned resource")}`)),
        make("ul", {}, list.slice(0, 5).map(({ host, name }) =>
            make("li", {}, make("bdi", {}, name), ` (${host})`)),
            list.length > 5 && make("li", {}, plural(list.length - 5, "more resource"))),
        useWarning(list),
    ].filter(Boolean);
    if (!await requireToken()) return false;
    const title = `Remove ${plural(list.length, "resource")}?`;
    if (!await openDialog(title, content, { submit: "Remove", isDangerous: true })) return false;
    const response = await perform({ action: "remove", keys: keys(list) }, (count, { removedBytes }) =>
        `Removed ${plural(count, "resource")}, ${bytes(removedBytes)}.`);
    for (const { key, ok } of response?.results ?? []) {
        if (ok && key) store.forget(key);
    }
    return response !== null;
};

/// Downloads complete files. Streams and incomplete resources can't be exported.
export const download = async list => {
    const complete = list.filter(({ kind, complete }) => kind === "file" && complete);
    for (const [index, { key, name }] of complete.entries()) {
        // Browsers ignore downloads that start within a short time.
        if (index > 0) await new Promise(resolve => setTimeout(resolve, 150));
        const link = make("a", { href: api.contentPath(key), download: name });
        document.body.append(link);
        link.click();
        link.remove();
    }
    const others = list.length - complete.length;
    if (others > 0) toast(`${plural(others, "resource")} can’t be downloaded. Only complete files can.`);
};

/// Prompts for URLs to preload, and starts the preloads.
export const preload = async (urls = "", pins = true) => {
    if (!await requireToken()) return;
    const input = make("textarea", {
        id: "preload-urls", required: true, rows: 3, spellcheck: false, placeholder: "https://example.com/video.mp4",
        value: urls, "aria-describedby": "preload-hint",
    });
    const check = make("input", { type: "checkbox", checked: pins });
    const content = [
        make("div", { class: "field" }, make("label", { for: input.id }, "URLs, one on each line"), input,
            make("p", { class: "hint", id: "preload-hint" }, "The whole file is fetched. For the manifest of ",
                "an HLS or DASH stream, its highest quality is fetched.",
                urls !== "" && " The list of resources contains no queries. If the origin requires a query, add it.")),
        make("label", {}, check, "Pin the media, so that it is never evicted (for offline playback)"),
    ];
    if (!await openDialog("Preload media", content, { submit: "Preload" })) return;
    const list = input.value.split(/\s+/).filter(Boolean);
    if (list.length === 0) return;
    await perform({ action: "preload", urls: list, pin: check.checked }, count =>
        `${plural(count, "preload")} started. The map of each resource shows its progress.`);
};

/// Prompts for a confirmation, and preloads the missing bytes of files, and streams. Complete files are omitted.
export const preloadStored = list => {
    const incomplete = list.filter(({ kind, complete }) => kind !== "file" || !complete);
    if (incomplete.length === 0) toast("All selected resources are complete.");
    else preload(incomplete.map(({ url }) => url).join("\n"), incomplete.every(({ pinned }) => pinned));
};

/// Prompts for a prefix or a tag, and removes the resources that match.
export const purge = async () => {
    if (!await requireToken()) return;
    // Only the server knows all files that a purge removes.
    const count = list => list.length === 0 ? "No listed resource matches. The server checks this when you continue."
        : `${plural(list.length, "listed resource")}, ${bytes(total(list))}`;
    const matches = make("p", { class: "hint", role: "status" });
    const prefix = make("input", { id: "purge-prefix", type: "url", placeholder: "https://example.com/folder/" });
    const tag = make("input", { id: "purge-tag", spellcheck: false });
    const affected = () => prefix.value === "" ? []
        : [...store.resources.values()].filter(({ url }) => url.startsWith(prefix.value));
    const update = () => {
        matches.textContent = prefix.value === "" ? "" : count(affected());
        tag.disabled = prefix.value !== "";
        prefix.disabled = tag.value !== "";
    };
    prefix.addEventListener("input", update);
    tag.addEventListener("input", update);
    const content = [
        make("div", { class: "field" }, make("label", { for: prefix.id }, "All URLs that start with"), prefix, matches),
        make("div", { class: "field" }, make("label", { for: tag.id }, "Or all resources with the cache tag"), tag,
            make("p", { class: "hint" }, "Origins set tags in the field Surrogate-Key or Cache-Tag.")),
    ];
    if (!await openDialog("Purge", content, { submit: "Continue", isDangerous: false })) return;
    const isPrefix = prefix.value !== "";
    if (!isPrefix && tag.value.trim() === "") return;
    const body = isPrefix ? { prefix: prefix.value } : { tag: tag.value.trim() };
    // The server determines what the purge removes, which may include files of streams that are not listed.
    const selected = await perform({ action: "purge", ...body, dryRun: true }, null);
    if (selected === null) return;
    if (selected.results.length === 0) {
        toast("No resource matches.");
        return;
    }
    const affectedKeys = new Set(selected.results.map(({ key }) => key));
    const text = `${plural(selected.results.length, "file")} (${bytes(selected.removedBytes)}) ${isPrefix
        ? `with URLs that start with ${prefix.value}` : `with the tag ${tag.value.trim()}`} will be removed.`;
    const warning = [make("p", {}, text, " Pinned resources will be removed, too."),
        useWarning([...store.resources.values()].filter(({ key }) => affectedKeys.has(key)))].filter(Boolean);
    if (!await openDialog("Remove the matching resources?", warning, { submit: "Remove", isDangerous: true })) return;
    const response = await perform({ action: "purge", ...body }, (count, { removedBytes }) =>
        `Removed ${plural(count, "resource")}, ${bytes(removedBytes)}.`);
    if (response?.results.length === 0) toast("No resource matches.");
};
