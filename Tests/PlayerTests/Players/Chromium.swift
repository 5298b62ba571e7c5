import Foundation
import SpoolOrigin
import SpoolTesting

/// Headless Chromium, controlled by WebDriver.
struct Chromium: MediaPlayer {
    private let driver: Tool

    init?() {
        guard Tool("chromium") != nil || Tool("google-chrome") != nil, let driver = Tool("chromedriver") else {
            return nil
        }
        self.driver = driver
    }

    func play(_ url: URL, _ plan: PlayPlan) async throws {
        let page = OriginResource(.data(Data("<!doctype html><video muted></video>".utf8)), contentType: "text/html")
        let result = try await OriginServer.run(["/": page]) { origin in
            try await WebDriver.run(driver) { browser in
                try await browser.open(origin.url("/"))
                return try await browser.call(
                    Self.script,
                    [
                        url.absoluteString, plan.seeks.map { "\($0)" }.joined(separator: "/"),
                        // Chromium 156 can't play a live stream faster than real time, even directly from nginx.
                        plan.duration == nil ? "1" : "8",
                    ])
            }
        }
        let words = result.split(separator: " ")
        guard words.count == 3, words[0] == "ended", let position = Double(words[1]), let duration = Double(words[2])
        else {
            throw Tool.Failed(description: "Chromium did not reach the end: \(result)")
        }
        guard let expected = plan.duration else { return }
        guard abs(duration - expected) < 1, position > duration - 0.5 else {
            throw Tool.Failed(description: "Chromium ended at \(position) of \(duration) s")
        }
    }

    /// The script that performs seeks and then plays to the end, at a given rate.
    private static let script = """
        const [url, seeks, rate, done] = arguments, video = document.querySelector("video");
        const event = name => new Promise((yes, no) => {
            video.addEventListener(name, yes, {once: true});
            video.addEventListener("error", () => no(video.error.code + " " + video.error.message), {once: true});
        });
        (async () => {
            try {
                const loaded = event("loadeddata");
                // Chromium plays HLS with byte ranges only if the page may read the responses (CORS).
                video.crossOrigin = "anonymous";
                video.src = url;
                await loaded;
                for (const second of seeks.split("/").filter(text => text)) {
                    const seeked = event("seeked");
                    video.currentTime = Number(second);
                    await seeked;
                }
                const ended = event("ended");
                video.playbackRate = Number(rate);
                await video.play();
                await ended;
                done(["ended", video.currentTime, video.duration].join(" "));
            } catch (error) {
                done("failed at " + video.currentTime + ": " + error);
            }
        })();
        """
}
