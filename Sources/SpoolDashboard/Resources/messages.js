// Dialogs, short messages and announcements.
import { button, make } from "./elements.js";

/// Shows a dialog with a form. Returns whether it was submitted.
export const openDialog = (title, content, { submit = "OK", cancel = "Cancel", isDangerous = false } = {}) =>
    new Promise(resolve => {
        const heading = make("h2", { id: `dialog-${Date.now()}` }, title);
        const confirm = make("button", { class: isDangerous ? "primary danger" : "primary", type: "submit" }, submit);
        const dismiss = cancel && button(cancel, () => dialog.close());
        if (isDangerous && dismiss) dismiss.autofocus = true;
        let isSubmitted = false;
        const form = make("form", {
            method: "dialog", onsubmit: event => {
                event.preventDefault();
                isSubmitted = true;
                dialog.close();
            },
        }, heading, content, make("div", { class: "buttons" }, dismiss, confirm));
        const dialog = make("dialog", { "aria-labelledby": heading.id }, form);
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(isSubmitted);
        });
        document.body.append(dialog);
        dialog.showModal();
    });

/// Shows a message for a few seconds. It is also a live region.
export const toast = text => {
    const element = make("p", { class: "toast" }, text);
    document.getElementById("toasts").append(element);
    setTimeout(() => element.remove(), 7000);
};

let announced = null;
/// Reports the newest text to assistive technology, at most once per second.
export const announce = text => {
    if (announced === null) {
        setTimeout(() => {
            const live = document.getElementById("live");
            if (live.textContent !== announced) live.textContent = announced;
            announced = null;
        }, 1000);
    }
    announced = text;
};
