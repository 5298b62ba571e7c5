// Sends requests to the server's API. The operator's token is in the session storage of this tab only.

const storageName = "spool-operator-token";

/// An error from the API, with a sentence from the server if it sent one.
export class RequestError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

const request = async (path, options = {}) => {
    let response;
    try {
        response = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
    } catch {
        throw new RequestError(0, "The server does not respond.");
    }
    const isJSON = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
    const body = response.status === 204 ? null : isJSON ? await response.json() : await response.text();
    if (!response.ok) {
        throw new RequestError(response.status, body?.error ?? `The server responded with status ${response.status}.`);
    }
    return body;
};

export const resources = () => request("api/resources");
export const resource = key => request(`api/resources/${encodeURIComponent(key)}`);
export const status = () => request("api/status");
export const history = () => request("api/history");
export const settings = () => request("api/settings");
export const contentPath = key => `api/resources/${encodeURIComponent(key)}/content`;

/// The token of this tab, or `null`.
export const token = () => sessionStorage.getItem(storageName);

export const setToken = value => {
    if (value) sessionStorage.setItem(storageName, value);
    else sessionStorage.removeItem(storageName);
    dispatchEvent(new Event("spool-token"));
};

const authorized = (path, body) => request(path, {
    method: "POST", body: JSON.stringify(body),
    headers: { "Authorization": `Bearer ${token() ?? ""}`, "Content-Type": "application/json" },
});

/// Returns whether the server accepts a token.
export const isValid = async value => {
    try {
        await request("api/check", { method: "POST", headers: { "Authorization": `Bearer ${value}` } });
        return true;
    } catch (error) {
        if (error.status === 401) return false;
        throw error;
    }
};

export const act = body => authorized("api/actions", body);

/// Decodes a part of an address. Returns it unchanged if its encoding is invalid.
export const decoded = text => {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
};

/// Moves the token from the fragment of the address into the session storage, and removes it from the address bar.
export const takeTokenFromAddress = () => {
    const match = /^#token=([^&]+)/.exec(location.hash);
    if (!match) return;
    setToken(decoded(match[1]));
    globalThis.history.replaceState(null, "", location.pathname + location.search);
};

/// The URL of the folder that contains `.spool/`: the server's address, with the token in the path if there is one.
const serverAddress = () => new URL("..", document.baseURI).href;

/// The server's address for display, without the token in the path.
export const shownAddress = () => serverAddress().replace(/\/(~|%7e)[^/]+/i, "/~…");

/// The URL at which the server provides the media of an origin's URL.
///
/// - address: the server's address. Pass `shownAddress()` if the URL is displayed.
export const playerURL = (url, address = serverAddress()) => address + url.replace(/^(https?):\/\//i, (_, scheme) =>
    `${scheme.toLowerCase()}/`);
