// The entry point of the page: reads the token from the address, and shows the view that the address specifies.
import { decoded, takeTokenFromAddress } from "./api.js";
import { setText } from "./elements.js";
import { showErrors } from "./errors.js";
import { Library } from "./library.js";
import { announce } from "./messages.js";
import { NowView } from "./now.js";
import { ResourceView } from "./resource.js";
import { SettingsView } from "./settings.js";
import { store } from "./store.js";

takeTokenFromAddress();
const section = name => document.getElementById(`view-${name}`);
const library = new Library(section("library")), now = new NowView(section("now"));
const resource = new ResourceView(section("resource")), settings = new SettingsView(section("settings"));
showErrors(section("errors"));

const titles = { library: "Library", now: "Now", settings: "Settings", errors: "Errors", resource: "Resource" };
/// For each view without its own link in the navigation, the view whose link is marked as current.
const parents = { resource: "library", errors: "now" };
let current = null;
const scrolled = new Map();

/// Shows the view that the fragment names: `#/`, `#/resource/KEY`, `#/now`, `#/settings` or `#/errors/CODE`.
const route = () => {
    if (location.hash.startsWith("#token=")) takeTokenFromAddress();
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
    const [first, second] = path.split("/").map(decoded);
    const name = Object.hasOwn(titles, first) ? first : "library";
    const isFirst = current === null, before = current;
    if (before) scrolled.set(before, scrollY);
    current = name;
    for (const each of Object.keys(titles)) section(each).hidden = each !== name;
    for (const link of document.querySelectorAll("nav a")) {
        const isCurrent = link.dataset.view === (parents[name] ?? name);
        if (isCurrent) link.setAttribute("aria-current", link.dataset.view === name ? "page" : "true");
        else link.removeAttribute("aria-current");
    }
    document.title = `${titles[name]} – Spool`;
    library.isShown = name === "library";
    now.isShown = name === "now";
    settings.isShown = name === "settings";
    resource.show(name === "resource" ? second ?? "" : null);
    if (name === "library" && query) {
        library.show(new URLSearchParams(query));
        history.replaceState(null, "", "#/");
    }
    if (isFirst) return;
    scrollTo(0, name === "library" && before === "resource" ? scrolled.get(name) ?? 0 : 0);
    if (before !== name) {
        document.getElementById("main").focus({ preventScroll: true });
        announce(titles[name]);
    }
    if (name === "errors" && second) {
        const entry = document.getElementById(`error-${second}`);
        entry?.scrollIntoView({ block: "center" });
        entry?.focus({ preventScroll: true });
    }
};

const state = document.getElementById("connection"), banner = document.getElementById("banner");
let wasLost = false;
store.addEventListener("connection", () => {
    const isLost = store.isConnected === false;
    state.dataset.state = isLost ? "lost" : "live";
    setText(state, isLost ? "No connection" : "Live");
    banner.hidden = !isLost;
    const cause = store.isEnded ? "Too many pages are open, so the server closed the connection to this page."
        : "The server does not respond.";
    setText(banner, isLost ? `${cause} The page reconnects automatically.` : "");
    if (!isLost && wasLost) announce("Connected to the server again");
    wasLost = isLost;
});

document.getElementById("skip").addEventListener("click", event => {
    event.preventDefault();
    document.getElementById("main").focus();
});
addEventListener("hashchange", route);
route();
store.start();
