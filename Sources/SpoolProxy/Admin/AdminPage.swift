#if Proxy
/// The operator's status page, which shows the stored media and the running transfers.
///
/// It requests `/.spool/api/status` every second. The script and the style sheet are separate files, because the
/// `Content-Security-Policy` forbids inline ones. References are relative, so that they retain the token in the path.
enum AdminPage {
    static let document = """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Spool</title>
        <link rel="stylesheet" href="page.css">
        <link rel="icon" href="icon.svg">
        <script type="module" src="page.js"></script>
        </head>
        <body>
        <header><h1>Spool</h1><p id="state" role="status">Loading …</p></header>
        <main>
        <dl id="figures"></dl>
        <section><h2>Requests to origins</h2><div id="transfers"></div></section>
        <section><h2>Media <small id="count"></small></h2><div id="media"></div></section>
        </main>
        <noscript><p>This page needs JavaScript; <a href="api/media">api/media</a> and <a href="metrics">metrics</a> do
        not.</p></noscript>
        </body>
        </html>

        """

    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#2563eb"/>\
        <circle cx="8" cy="8" r="2.5" fill="#fff"/></svg>

        """

    static let style = """
        :root {
            color-scheme: light dark;
            --ink: light-dark(#1a1c20, #e7e9ee); --quiet: light-dark(#5d6470, #9aa2b1);
            --paper: light-dark(#f6f7f9, #14161a); --card: light-dark(#fff, #1d2026);
            --line: light-dark(#dfe3ea, #31363f); --full: light-dark(#2563eb, #6ea0ff); --bad: light-dark(#b42318, #ff8a7a);
        }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
        header, main, noscript p { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
        header { display: flex; align-items: baseline; gap: 1rem; padding-top: 1.2rem; }
        h1 { font-size: 1.5rem; margin: 0; }
        h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
        small, #state, dt, .quiet { color: var(--quiet); font-weight: normal; }
        #state { margin: 0; }
        #state.bad { color: var(--bad); }
        dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .7rem; margin: 1rem 0 0; }
        dl > div, .empty, table { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
        dl > div { padding: .6rem .8rem; }
        dt { font-size: .85rem; }
        dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
        dd small { font-size: .8rem; display: block; }
        table { width: 100%; border-spacing: 0; }
        th, td { text-align: left; padding: .4rem .8rem; border-top: 1px solid var(--line); }
        thead th { border-top: 0; font-size: .85rem; font-weight: normal; color: var(--quiet); }
        td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
        td.name { overflow-wrap: anywhere; }
        .pin { color: var(--full); }
        .empty { margin: 0; padding: .8rem; color: var(--quiet); }
        svg.bar { display: block; width: 9rem; height: .6rem; background: var(--line); border-radius: .3rem; }
        svg.bar rect { fill: var(--full); }
        @media (max-width: 40rem) { .wide { display: none; } svg.bar { width: 4rem; } th, td { padding: .4rem; } }

        """
}

extension AdminPage {
    /// The script. It sends no requests while the page is hidden, and inserts strings only as text.
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
            svg.setAttribute("aria-label", "stored ranges");
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
            // Requests for this page are not counted.
            const all = ["hit", "miss", "partial", "stale"].reduce((sum, kind) => sum + (requests[kind] ?? 0), 0);
            fill("figures",
                figure("Stored", bytes(status.storedBytes), status.capacityBytes === null ? "no limit"
                    : share(status.storedBytes, status.capacityBytes) + " of " + bytes(status.capacityBytes)),
                figure("Saved", bytes(status.savedBytes),
                    share(status.savedBytes, status.servedBytes) + " of " + bytes(status.servedBytes) + " served"),
                figure("From origins", bytes(status.originBytes), counted(status.originRequests, "request")),
                figure("Hits", share(hits, all), hits + " of " + counted(all, "request")),
                figure("In progress", counted(status.openRequests, "request"), counted(status.openReaders, "reader")),
                figure("Evictions", status.evictions, counted(status.errors, "error")));
            fill("transfers", status.transfers.length === 0 ? make("p", "No requests in progress.", "empty")
                : table([["Media", "name"], ["From", "number wide"], ["Position", "number"], ["To", "number wide"]],
                    status.transfers.map(transfer => [transfer.url, bytes(transfer.start), bytes(transfer.position),
                        transfer.end === null ? "the end" : bytes(transfer.end)])));
            fill("media", status.media.length === 0 ? make("p", "Nothing is stored yet.", "empty")
                : table([["URL", "name"], ["", ""], ["Stored", "number"], ["Size", "number wide"], ["Last used", "number wide"]],
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
                    if (!response.ok) throw new Error("the server responded with " + response.status);
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
