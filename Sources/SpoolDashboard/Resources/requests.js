// Tables of one resource: its requests to the origin as a waterfall, its waits, and the files of a stream.
import { make } from "./elements.js";
import { ago, bytes, date, number, percent, plural, range, rate, seconds, sentence, time } from "./format.js";

const outcomes = {
    running: ["in progress", "good"], complete: ["complete", ""], cancelled: ["cancelled", ""],
    failed: ["failed", "bad"],
};

const header = (...labels) => make("thead", {}, make("tr", {}, labels.map(([label, kind]) =>
    make("th", { scope: "col", class: kind }, label))));

/// The requests, in the order in which they started. The bar of each request shows the wait for the first byte, then
/// the transfer.
export const waterfall = (requests, showsURL) => {
    if (requests.length === 0) {
        return make("p", { class: "empty" }, "No requests in the latest log entries.");
    }
    const now = Date.now(), list = [...requests].reverse().map(request => {
        const start = Date.parse(request.started);
        const end = request.seconds === null ? now : start + request.seconds * 1000;
        return { ...request, start, end, from: request.start, to: request.end };
    });
    // Long pauses between requests are shortened, so that the bars stay visible.
    let shift = 0, latest = list[0].start;
    for (const request of list) {
        const pause = request.start - latest;
        if (pause > 3000) shift += pause - 3000;
        latest = Math.max(latest, request.end);
        request.left = request.start - shift;
        request.right = request.end - shift;
    }
    const first = list[0].left, total = Math.max(1, ...list.map(({ right }) => right - first));
    const rows = list.map(request => {
        const [label, kind] = outcomes[request.outcome] ?? [request.outcome, ""];
        const part = make("span", { class: `flight ${request.outcome}` }), head = make("span", { class: "first" });
        part.style.insetInlineStart = `${(request.left - first) / total * 100}%`;
        part.style.inlineSize = `max(3px, ${(request.right - request.left) / total * 100}%)`;
        const length = request.right - request.left;
        head.style.inlineSize = `${Math.min(100, (request.firstByteSeconds ?? 0) * 1000 / Math.max(1, length) * 100)}%`;
        part.append(head);
        const speed = request.seconds > 0 && request.bytes > 0 ? rate(request.bytes / request.seconds) : "";
        return make("tr", {}, make("td", { title: date(request.start) }, time(request.start)),
            showsURL && make("td", { class: "breaks" }, request.url.split("/").slice(-2).join("/")),
            make("td", { class: "number" }, range(request.from, request.to)),
            make("td", { class: "number" }, request.status === null ? "–" : String(request.status)),
            make("td", { class: "number" }, bytes(request.bytes)),
            make("td", { class: "number" }, seconds(request.firstByteSeconds)),
            make("td", { class: "number" }, seconds(request.seconds)),
            make("td", { class: "lane-cell" }, make("div", { class: "lane" }, part)),
            make("td", {}, make("span", { class: `tag ${kind}` }, label), " ",
                speed && make("span", { class: "quiet" }, speed),
                request.message && make("span", { class: "message" }, sentence(request.message))));
    });
    return make("table", { class: "waterfall" }, header(["Time"], ...showsURL ? [["File"]] : [], ["Range", "number"],
            ["Status", "number"], ["Bytes", "number"], ["First byte", "number"], ["Duration", "number"], ["Waterfall"],
            ["Result"]), make("tbody", {}, rows));
};

const causes = {
    // The server does not report whether the origin, the network or a limit of connections delayed a response.
    slowOrigin: ["Slow response", "The bytes were requested, but received late. The origin or the network was slow, "
        + "or the request had to wait for another connection. If this happens often, preload media before playing it."],
    retry: ["Retry after an error", "A request failed, and was sent again."],
    evicted: ["Evicted", "The bytes had been stored, and were evicted. Pin the media, or raise the capacity."],
    notStored: ["Not stored", "No request for the bytes was running, for example after a seek."],
};

const waitLimit = 8;

/// Groups waits, the newest first, by resource and cause. Each group has the fields of its newest wait, and the
/// number of waits as `count`. The newest group of each cause is included.
export const groupedWaits = list => {
    const groups = new Map(), newest = new Map();
    for (const wait of list) {
        const name = `${wait.key} ${wait.cause}`, group = groups.get(name) ?? { ...wait, count: 0 };
        group.count += 1;
        groups.set(name, group);
        if (!newest.has(wait.cause)) newest.set(wait.cause, group);
    }
    const all = [...groups.values()], shown = [...new Set([...newest.values(), ...all])].slice(0, waitLimit);
    return all.filter(group => shown.includes(group));
};

/// The newest waits of readers, with their causes and hints. With `links`, each entry links to its resource.
export const waits = (list, { links = false, empty }) => list.length === 0 ? make("p", { class: "empty" }, empty)
    : make("ul", { class: "waits" }, list.slice(0, waitLimit).map((wait, index) => {
        const [label, hint] = causes[wait.cause] ?? ["Unknown cause", null];
        const when = Date.parse(wait.time);
        return make("li", {}, make("p", { class: "line" }, make("span", { class: "tag warn" }, label),
            links && wait.key && make("a", { href: `#/resource/${wait.key}` }, make("bdi", {}, wait.name)),
            wait.count > 1 && make("span", { class: "quiet" }, plural(wait.count, "wait")),
            make("time", { class: "quiet", dateTime: wait.time, title: date(when) }, ago(when))),
        make("p", {}, sentence(wait.message)),
        // The hint of several waits with the same cause is shown once.
        hint !== null && wait.cause !== list[index - 1]?.cause && make("p", { class: "quiet" }, hint));
    }), list.length > waitLimit && make("li", { class: "quiet" }, `${number(list.length - waitLimit)} earlier`));

/// The files of a stream.
export const files = parts => make("table", {},
    header(["File"], ["Type"], ["Stored", "number"], ["Size", "number"], ["State"]),
        make("tbody", {}, parts.map(part => make("tr", {},
            make("td", { class: "breaks" }, part.url.split("/").slice(-2).join("/")),
            make("td", {}, part.contentType ?? "unknown"), make("td", { class: "number" }, bytes(part.storedBytes)),
            make("td", { class: "number" }, bytes(part.length)), make("td", {}, part.complete
                ? make("span", { class: "tag good" }, "complete") : make("span", { class: "tag" },
                    part.storedBytes === 0 ? "not stored" : percent(part.storedBytes, part.length)))))));
