// The page's copy of the state of the cache: resources, requests in progress, readers, totals and the log.
import * as api from "./api.js";
import { limited, listen } from "./connection.js";
import { names, typeName } from "./format.js";
import { requestFrame } from "./frames.js";

/// The time for which an evicted range is shown.
export const fadeMilliseconds = 6000;

class Store extends EventTarget {
    resources = new Map();
    /// The requests in progress and the readers, by key.
    transfers = new Map();
    readers = new Map();
    /// The numbers of all requests in progress and of all waiting readers. The server lists at most 100 of each.
    transferCount = 0;
    waitingCount = 0;
    /// The ranges that were evicted in the last few seconds, by key.
    evictions = new Map();
    totals = null;
    log = [];
    isConnected = null;
    /// Whether the server ended the connection, because too many pages are open.
    isEnded = false;
    isLoaded = false;
    /// The number of resources that are not listed because the length of the list is limited.
    hiddenCount = 0;
    /// The rates over the last few seconds, in bytes per second.
    rates = { cache: 0, origin: 0 };
    #queue = null;
    #mustLoadAgain = false;
    #measured = [];

    start() {
        listen(message => this.#receive(message));
        this.load();
    }

    /// Fetches all resources and the status. Updates that are received meanwhile are applied afterwards.
    async load() {
        this.#mustLoadAgain = this.#queue !== null;
        if (this.#mustLoadAgain) return;
        this.#queue = [];
        try {
            const [list, status] = await Promise.all([api.resources(), api.status()]);
            this.resources = new Map(list.resources.map(resource => [resource.key, this.#known(resource)]));
            this.hiddenCount = list.count - list.resources.length;
            this.totals = status;
            this.isLoaded = true;
        } catch (error) {
            this.#emit("failure", error.message);
        }
        const queue = this.#queue;
        this.#queue = null;
        queue.forEach(message => this.#update(message));
        this.#emit("list");
        if (this.#mustLoadAgain) this.load();
    }

    forget(key) {
        if (this.resources.delete(key)) this.#emit("list");
    }

    #emit(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail }));
    }

    #receive(message) {
        if (message.type === "state") {
            this.isConnected = message.isConnected;
            this.isEnded = message.isEnded;
            if (!message.isConnected) {
                this.transfers.clear();
                this.readers.clear();
                this.transferCount = this.waitingCount = 0;
                this.rates = { cache: 0, origin: 0 };
                if (this.totals) this.totals = { ...this.totals, openRequests: 0, openReaders: 0 };
            }
            this.#emit("connection");
        } else if (message.type === "hello") {
            if (message.isOld) return;
            if (this.totals && this.totals.started !== message.started) this.log = [];
            this.#measured = [];
            this.load(); // Updates do not include changes from before the connection.
        } else if (message.type === "log") {
            this.#addToLog(message.log);
        } else if (message.type === "update") {
            if (this.#queue) this.#queue.push(message);
            else this.#update(message);
        }
    }

    #update(message) {
        const now = performance.now();
        this.#measure(message.totals, Date.parse(message.time));
        this.totals = { ...this.totals, ...message.totals };
        this.transfers = this.#grouped(message.transfers, this.transfers, now);
        this.readers = this.#grouped(message.readers, this.readers, now);
        this.transferCount = message.transferCount;
        this.waitingCount = message.waitingCount;
        let changesList = message.removed.length > 0;
        for (const key of message.removed) this.resources.delete(key);
        for (const resource of message.changed) {
            changesList ||= !this.resources.has(resource.key);
            this.resources.set(resource.key, this.#known(resource));
        }
        for (const { key, range } of message.evictedRanges) {
            this.evictions.set(key, [...this.evictions.get(key) ?? [], { range, time: now }].slice(-50));
            setTimeout(() => this.#forgetEvictions(key), fadeMilliseconds);
        }
        this.#addToLog(message.log);
        this.#emit("update", message);
        if (changesList) this.#emit("list");
    }

    #forgetEvictions(key) {
        const oldest = performance.now() - fadeMilliseconds + 20;
        const list = (this.evictions.get(key) ?? []).filter(({ time }) => time > oldest);
        if (list.length > 0) this.evictions.set(key, list);
        else this.evictions.delete(key);
        requestFrame();
    }

    /// Groups entries by key. An entry keeps the position that is currently drawn, so that its mark moves smoothly.
    #grouped(entries, before, now) {
        const groups = new Map();
        for (const entry of entries) {
            const old = before.get(entry.key)?.find(({ id }) => id === entry.id);
            const list = groups.get(entry.key) ?? [];
            list.push({ ...entry, time: now, drawn: old?.drawn ?? entry.position });
            groups.set(entry.key, list);
        }
        return groups;
    }

    #known(resource) {
        const { host, path, name } = names(resource.url);
        return {
            ...resource, host, path, name, type: typeName(resource), used: Date.parse(resource.lastUsed),
            search: `${host}${path}`.toLowerCase(),
        };
    }

    #addToLog(entries) {
        if (entries.length === 0) return;
        const last = this.log.at(-1)?.id ?? -1;
        this.log = limited([...this.log, ...entries.filter(({ id }) => id > last)]);
        this.#emit("log");
    }

    #measure(totals, time) {
        const { savedBytes, originBytes } = totals;
        this.#measured.push({ time, savedBytes, originBytes });
        while (this.#measured.length > 2 && this.#measured[0].time < time - 3000) this.#measured.shift();
        const first = this.#measured[0], elapsed = (time - first.time) / 1000;
        if (elapsed < 0.1) return;
        this.rates = {
            cache: Math.max(0, savedBytes - first.savedBytes) / elapsed,
            origin: Math.max(0, originBytes - first.originBytes) / elapsed,
        };
    }
}

export const store = new Store();
