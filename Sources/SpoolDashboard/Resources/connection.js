// Receives the server's events through one connection per browser, and resumes after an interruption.

/// The kinds of log entries that are errors or warnings.
export const problems = new Set(["failed", "retrying", "notCached", "inconsistentResponse", "damagedBlocksDiscarded",
    "cacheUnavailable", "warning", "originChanged"]);

/// Returns a log that contains the latest 500 entries and the latest 100 earlier waits and problems, which stay longer
/// than the requests of a busy server.
export const limited = log => log.length <= 500 ? log : [
    ...log.slice(0, -500).filter(({ kind }) => kind === "waited" || problems.has(kind)).slice(-100), ...log.slice(-500),
];

/// Connects to `api/events`, and reconnects until the page closes.
///
/// `EventSource` is not used, because it can't send `Last-Event-ID` with its first request, and stops after a response
/// with an error status. The first request sends 0, so that the server repeats its recent log. Identifiers contain the
/// run of the server, so that the server recognizes identifiers from an earlier run.
///
/// - report(message): receives `{type: "state", isConnected}`, `{type: "hello", …}` and `{type: "update", …}`.
export const connect = report => {
    const silenceLimit = 45_000; // The server sends a comment every 15 seconds.
    let lastID = "0", delay = 1000, isConnected = null, isEnded = false;

    const setConnected = value => {
        if (isConnected !== value) report({ type: "state", isConnected: value, isEnded });
        isConnected = value;
    };

    const handle = text => {
        let type = "message", data = "", id = null;
        for (const line of text.split("\n")) {
            const colon = line.indexOf(":");
            const field = colon < 0 ? line : line.slice(0, colon);
            const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
            if (field === "event") type = value;
            else if (field === "data") data += data === "" ? value : `\n${value}`;
            else if (field === "id") id = value;
            else if (field === "retry" && /^\d+$/.test(value)) delay = Number(value);
        }
        if (id !== null) lastID = id;
        if (data === "") return;
        const message = JSON.parse(data);
        if (type === "hello") {
            isEnded = false;
            setConnected(true);
        } else if (type === "end") {
            isEnded = true; // The server ends the stream because too many pages are open.
            return;
        }
        report({ ...message, type });
    };

    const read = async () => {
        const abort = new AbortController();
        let timer = setTimeout(() => abort.abort(), silenceLimit);
        try {
            const response = await fetch("api/events", {
                cache: "no-store", headers: { "Accept": "text/event-stream", "Last-Event-ID": lastID },
                signal: abort.signal,
            });
            if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            let rest = "";
            for (;;) {
                const { value, done } = await reader.read();
                if (done) return;
                clearTimeout(timer);
                timer = setTimeout(() => abort.abort(), silenceLimit);
                const events = (rest + value.replace(/\r\n?/g, "\n")).split("\n\n");
                rest = events.pop();
                events.forEach(handle);
            }
        } finally {
            clearTimeout(timer);
            abort.abort();
        }
    };

    const run = async () => {
        for (let failures = 0; ; failures += 1) {
            const before = Date.now();
            try {
                await read();
            } catch {
                // The connection was lost, or the server is not running. The next attempt follows.
            }
            setConnected(false);
            if (Date.now() - before > 5000) failures = 0;
            await new Promise(resolve => setTimeout(resolve, Math.min(Math.max(5000, delay), delay * 1.5 ** failures)));
        }
    };
    run();
};

/// The recent messages that a page needs when it joins the connection of another page.
export class Backlog {
    #log = [];
    #hello = null;
    #state = null;

    add(message) {
        if (message.type === "state") this.#state = message;
        if (message.type === "hello") {
            if (this.#hello?.started !== message.started) this.#log = [];
            this.#hello = message;
        }
        if (message.type === "update" && message.log.length > 0) this.#log = limited([...this.#log, ...message.log]);
    }

    get messages() {
        return [{ type: "log", log: this.#log }, this.#hello && { ...this.#hello, isOld: true }, this.#state]
            .filter(Boolean);
    }
}

/// Reports each message of the connection: through a shared worker, or otherwise through the one page that holds the
/// lock.
export const listen = report => {
    if ("SharedWorker" in globalThis) {
        const join = () => {
            const worker = new SharedWorker(new URL("worker.js", import.meta.url), { type: "module", name: "spool" });
            worker.onerror = () => connect(report); // The browser does not support modules in shared workers.
            worker.port.onmessage = ({ data }) => report(data);
            addEventListener("pagehide", () => worker.port.postMessage("close"), { once: true });
        };
        join();
        // A page that was in the back-forward cache joins again.
        addEventListener("pageshow", event => event.persisted && join());
        return;
    }
    if (!("BroadcastChannel" in globalThis) || !navigator.locks) {
        connect(report);
        return;
    }
    const name = `spool ${new URL(".", import.meta.url).pathname}`;
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }) => data.type !== "join" && report(data);
    channel.postMessage({ type: "join" });
    navigator.locks.request(name, () => {
        const backlog = new Backlog();
        channel.onmessage = ({ data }) => {
            if (data.type === "join") backlog.messages.forEach(message => channel.postMessage(message));
        };
        connect(message => {
            backlog.add(message);
            channel.postMessage(message);
            report(message);
        });
        return new Promise(() => {}); // Holds the lock until the page closes.
    });
};
