// The reference of error codes, as in docs/errors.md: the meaning and the fix of each code.
import { make } from "./elements.js";

/// The meaning and the fix by code. `null` means that no fix is needed.
export const errors = {
    resourceChanged: ["The media changed at its origin during a read.", "Start again. The new version is fetched."],
    unsatisfiableRange: ["The range starts at or after the end of the media.",
        "Request bytes within the length of the resource."],
    originUnavailable: ["The origin can’t be reached, or all retries failed.",
        "Check the URL and the network, and try again later. Stored bytes remain readable."],
    originErrorStatus: ["The origin responded with a status that a retry would not change.",
        "After 404, correct the URL. After 401 or 403, send valid credentials to the origin."],
    malformedResponse: ["The origin’s response contradicts itself or the request, or is not media.",
        "Open the URL in a browser on the same network. Then contact the operator of the origin."],
    storage: ["A file operation failed. The message names the file and the cause.",
        "Free some space, or correct the permissions of the cache directory."],
    directoryInUse: ["Another process is using the cache directory.", "End that process, or choose another directory."],
    catalogTooNew: ["A newer version of Spool wrote the directory.", "Use that version, or choose another directory."],
    catalogDamaged: ["The catalog can’t be read.", "Run spool verify, or use the cache as if it were empty."],
    notStored: ["No part of the media is stored.", "Fetch the media, for example with Preload."],
    incomplete: ["Only a part of the media is stored.", "Fetch the rest, for example with Preload."],
    invalidArgument: ["A URL, a size or a value of the configuration is invalid.", "Correct it as the message states."],
    closed: ["The cache was closed while it was in use.", "Start the server again."],
    capacityExceeded: ["Pinned media, or media in use, fills the whole capacity. New media plays without being stored.",
        "Unpin or remove media, or raise the capacity in Settings."],
    keyRequired: ["The cache is encrypted, and no key was given.", "Start the server with the key of the cache."],
    wrongEncryptionKey: ["The cache is encrypted with a different key, or a key was given for an unencrypted cache.",
        "Start the server with the key of the cache, or without a key if the cache is unencrypted."],
    unreachable: ["No connection: the host name was not found, no server is listening, or there is no route.",
        "Check the URL, the port and the network."],
    timedOut: ["The origin did not send any data in time.", "Try again later. Received bytes stay in the cache."],
    connectionLost: ["The connection ended before the response was complete, even after all retries.",
        "Try again later. The transfer resumes where it stopped."],
    untrustedServer: ["The server’s certificate is not trusted, or no secure TLS connection is possible.",
        "Check the URL and the clock of the machine."],
    invalidRedirect: ["The origin redirects in a loop, too often, or from https to http.", "Use the final URL."],
    cancelled: ["The client cancelled the request.", null],
    other: ["Another transport error.", "Read the cause at the end of the message."],
    notPermitted: ["The system does not allow the transport to load the URL.", "Use an https URL."],
    opening: ["The disk is full or read-only, or a damaged catalog was set aside.",
        "If the disk is full, free some space."],
    notCached: ["The media is not stored. The message states the reason.",
        "Remove media, or raise the capacity in Settings."],
    originChanged: ["The media changed at its origin. The new version is fetched.", null],
    damaged: ["Stored bytes were damaged. They are fetched again.", "If this happens often, check the disk."],
};

/// The link to the reference of a code, or `null` if the code is unknown.
export const errorLink = code => code in errors ? make("a", { href: `#/errors/${code}` }, code) : null;

/// Fills the view with the reference.
export const showErrors = section => {
    section.classList.add("stack");
    section.append(make("p", { class: "quiet" }, "The codes of errors and warnings, each with its meaning and fix. ",
        "The complete list is in docs/errors.md, in the documentation of Spool."),
    make("div", { class: "card errors" }, Object.entries(errors).map(([code, [meaning, fix]]) => make("div", {},
        make("h2", { id: `error-${code}`, tabIndex: -1 }, make("code", {}, code)),
        make("p", {}, meaning, " ", make("span", { class: "quiet" }, fix ?? "No fix is needed."))))));
};
