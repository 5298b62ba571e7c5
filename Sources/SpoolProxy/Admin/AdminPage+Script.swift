#if Proxy
extension AdminPage {
    /// Draws what the server says each second; while the page is not looked at, it asks nothing. Text from outside is
    /// only ever text.
    static let script = #"""
        const units = ["B", "kB", "MB", "GB", "TB"];
        const bytes = count => {
            let unit = 0;
            while (count >= 1000 && unit < units.length - 1) { count /= 1000; unit += 1; }
            return (unit && count < 99.95 ? count.toFixed(1) : Math.round(count)) + " " + units[unit];
        };
        const counted = (count, thing) => count + " " + thing + (count === 1 ? "" : "s");
        const share = (part, whole) => whole > 0 ? Math.floor(part / whole * 100) + " %" : "–";
        const ago = date => {
            const seconds = Math.max(0, (Date.now() - Date.parse(date)) / 1000);
            if (seconds < 60) return Math.floor(seconds) + " s ago";
            if (seconds < 3600) return Math.floor(seconds / 60) + " min ago";
            return seconds < 86400 * 2 ? Math.floor(seconds / 3600) + " h ago" : Math.floor(seconds / 86400) + " d ago";
        };
        const make = (name, text, kind) => {
            const element = document.createElement(name);
            if (text !== undefined) element.textContent = text;
            if (kind) element.className = kind;
            return element;
        };
        const bar = (ranges, length) => {
            const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
            svg.setAttribute("class", "bar");
            svg.setAttribute("viewBox", "0 0 1000 1");
            svg.setAttribute("preserveAspectRatio", "none");
            svg.setAttribute("role", "img");
            svg.setAttribute("aria-label", "which parts are there");
            const end = length ?? ranges.at(-1)?.[1] ?? 0;
            for (const [from, to] of end > 0 ? ranges.slice(0, 500) : []) {
                const rect = document.createElementNS(space, "rect");
                rect.setAttribute("x", from / end * 1000);
                rect.setAttribute("width", Math.max(2, (to - from) / end * 1000));
                rect.setAttribute("height", 1);
                svg.append(rect);
            }
            return svg;
        };
        const figure = (label, value, note) => {
            const box = make("div"), number = make("dd", value);
            if (note) number.append(make("small", note));
            box.append(make("dt", label), number);
            return box;
        };
        const table = (heads, rows) => {
            const table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
            for (const [text, kind] of heads) {
                const cell = make("th", text, kind);
                cell.scope = "col";
                head.append(cell);
            }
            for (const row of rows) {
                const line = body.insertRow();
                row.forEach((content, index) => {
                    const cell = make("td", undefined, heads[index][1]);
                    cell.append(content);
                    line.append(cell);
                });
            }
            return table;
        };
        const fill = (id, ...children) => document.getElementById(id).replaceChildren(...children);

        const show = status => {
            const {requests} = status, hits = requests.hit ?? 0;
            // Not these pages' own.
            const all = ["hit", "miss", "partial", "stale"].reduce((sum, kind) => sum + (requests[kind] ?? 0), 0);
            fill("figures",
                figure("Stored", bytes(status.storedBytes), status.capacityBytes === null ? "no limit"
                    : share(status.storedBytes, status.capacityBytes) + " of " + bytes(status.capacityBytes)),
                figure("Saved", bytes(status.savedBytes),
                    share(status.savedBytes, status.servedBytes) + " of " + bytes(status.servedBytes) + " served"),
                figure("From origins", bytes(status.originBytes), counted(status.originRequests, "request")),
                figure("Hits", share(hits, all), hits + " of " + counted(all, "request")),
                figure("Open", counted(status.openRequests, "request"), counted(status.openReaders, "reader")),
                figure("Evictions", status.evictions, counted(status.errors, "error")));
            fill("transfers", status.transfers.length === 0 ? make("p", "No origin is being asked.", "empty")
                : table([["Media", "name"], ["From", "number wide"], ["At", "number"], ["To", "number wide"]],
                    status.transfers.map(transfer => [transfer.url, bytes(transfer.start), bytes(transfer.position),
                        transfer.end === null ? "the end" : bytes(transfer.end)])));
            fill("media", status.media.length === 0 ? make("p", "Nothing is stored yet.", "empty")
                : table([["Address", "name"], ["", ""], ["There", "number"], ["Of", "number wide"], ["Used", "number wide"]],
                    status.media.map(media => {
                        const name = make("span", media.url);
                        if (media.pinned) name.append(make("span", " pinned", "pin"));
                        const isStream = media.files > 1;
                        const there = isStream ? bar([[0, media.completeFiles]], media.files) : bar(media.ranges, media.length);
                        return [name, there, bytes(media.storedBytes), isStream ? counted(media.files, "file")
                            : media.length === null ? "?" : bytes(media.length), ago(media.lastUsed)];
                    })));
            fill("count", counted(status.fileCount, "file"));
        };

        const state = document.getElementById("state");
        const refresh = async () => {
            if (!document.hidden) {
                try {
                    const response = await fetch("api/status", {cache: "no-store"});
                    if (!response.ok) throw new Error("the server says " + response.status);
                    show(await response.json());
                    state.textContent = "live";
                    state.className = "";
                } catch (error) {
                    state.textContent = "not up to date: " + error.message;
                    state.className = "bad";
                }
            }
            setTimeout(refresh, 1000);
        };
        refresh();

        """#
}
#endif
