// The shared worker: one connection to the server for all pages of this browser.
import { Backlog, connect } from "./connection.js";

const ports = new Set();
const backlog = new Backlog();
let hasStarted = false;

const report = message => {
    backlog.add(message);
    for (const port of ports) port.postMessage(message);
};

addEventListener("connect", ({ ports: [port] }) => {
    ports.add(port);
    // The browser does not notify a worker that a page is closed, so the page sends a message.
    port.onmessage = ({ data }) => {
        if (data === "close") ports.delete(port);
    };
    for (const message of backlog.messages) port.postMessage(message);
    if (!hasStarted) connect(report);
    hasStarted = true;
});
