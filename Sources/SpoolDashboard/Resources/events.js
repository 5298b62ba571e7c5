// Receives the server's events through one connection per browser.
import { Backlog, connect } from "./connection.js";

/// Reports each message of the connection: with a shared worker, or else through the one page that has the lock.
export const listen = report => {
    if ("SharedWorker" in globalThis) {
        const join = () => {
            const worker = new SharedWorker(new URL("worker.js", import.meta.url), { type: "module", name: "spool" });
            worker.onerror = () => connect(report); // The browser does not support modules in shared workers.
            worker.port.onmessage = ({ data }) => report(data);
            addEventListener("pagehide", () => worker.port.postMessage("close"), { once: true });
        };
        join();
        // The page was in the back-forward cache.
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
