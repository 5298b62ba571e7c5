// Creates elements. Strings become text, never markup.

/// Creates an element with properties, attributes and children.
///
/// Functions with a name that starts with `on` are listeners. The names `class`, `for`, `role` and names with a hyphen
/// are attributes, and other names are properties. Children that are `null` or `false` are skipped.
export const make = (name, options = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
        if (value === undefined || value === null || value === false) continue;
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (key in element && !key.includes("-") && key !== "role" && key !== "list") element[key] = value;
        else element.setAttribute(key === "class" ? "class" : key, value === true ? "" : value);
    }
    element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
    return element;
};

/// Replaces the text of an element only if it differs, so that assistive technology is not notified needlessly.
export const setText = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
};

/// Creates a button.
export const button = (label, run, kind = "", options = {}) =>
    make("button", { type: "button", class: kind, onclick: run, ...options }, label);

/// Creates a framed section with a heading.
export const card = (title, ...content) => make("section", { class: "card stack" }, make("h2", {}, title), content);

/// Replaces the children of an element, unless it contains the focus.
export const fill = (element, ...children) => {
    if (!element.contains(document.activeElement)) element.replaceChildren(...children.filter(Boolean));
};

/// Creates the terms and descriptions of a definition list.
export const facts = rows => make("dl", { class: "facts" }, rows.filter(Boolean).map(([term, ...description]) =>
    make("div", {}, make("dt", {}, term), make("dd", {}, ...description))));

const drawings = {
    pin: "M6 2h4l-.6 4.6 2.6 2V10H8.7L8 14.5 7.3 10H4V8.6l2.6-2z",
};

/// Creates an icon without an accessible name, for use next to text.
export const icon = (name, kind = "fill") => {
    const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
    const path = document.createElementNS(space, "path");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("class", `icon ${kind}`);
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", drawings[name]);
    svg.append(path);
    return svg;
};

/// Creates a line with text and a button that copies the text. The button's label confirms the copy.
///
/// - shown: the text as it is displayed, for example without a token.
export const copyable = (text, { shown = text, label = "Copy" } = {}) => {
    const code = make("code", {}, shown);
    return make("p", { class: "copyable" }, code, button(label, async ({ currentTarget }) => {
        try {
            await navigator.clipboard.writeText(text);
            currentTarget.textContent = "Copied";
        } catch {
            // The browser has denied access to the clipboard, so the complete text is shown.
            setText(code, text);
            currentTarget.textContent = "Select the text to copy it";
        }
        setTimeout(() => { currentTarget.textContent = label; }, 2000);
    }, "small"));
};

/// A labeled number with a note. `set(value, note, share)` updates it; a share from 0 to 1 is also shown as a bar.
export const figure = label => {
    const value = make("span", { class: "value" }), note = make("span", { class: "note" });
    const part = make("span", { class: "part" }), bar = make("span", { class: "bar", hidden: true }, part);
    return {
        element: make("div", { class: "figure" }, make("dt", {}, label), make("dd", {}, value, note, bar)),
        set(text, noteText = "", share = null) {
            setText(value, text);
            setText(note, noteText);
            bar.hidden = share === null;
            part.hidden = !(share > 0);
            if (share !== null) part.style.inlineSize = `${Math.min(100, share * 100).toFixed(1)}%`;
        },
    };
};
