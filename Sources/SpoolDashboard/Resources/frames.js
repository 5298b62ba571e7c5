// The only drawing loop of the page. It stops when no drawing needs another frame, and while the page is hidden.

const drawings = new Set();
let isRunning = false;
const preference = matchMedia("(prefers-reduced-motion: reduce)");

/// Whether marks may move between two updates.
export const mayMove = () => !preference.matches;

const frame = now => {
    const start = performance.now();
    let continues = false;
    for (const draw of drawings) continues = draw(now) === true || continues;
    performance.measure("spool-frame", { start, end: performance.now() });
    // Observers still receive the measure. Without this call, the timeline would keep growing.
    performance.clearMeasures("spool-frame");
    isRunning = continues && !document.hidden;
    if (isRunning) requestAnimationFrame(frame);
};

/// Requests a frame, unless one is pending.
export const requestFrame = () => {
    if (isRunning || document.hidden) return;
    isRunning = true;
    requestAnimationFrame(frame);
};

/// Adds a drawing function, which returns true if it needs the next frame too. Returns a function that removes it.
export const addDrawing = draw => {
    drawings.add(draw);
    requestFrame();
    return () => drawings.delete(draw);
};

document.addEventListener("visibilitychange", () => {
    isRunning = false;
    requestFrame();
});
