import Foundation

extension AVPlayer {
    /// Playing without picture and sound, as fast as asked for: for tests, servers and `--headless`. Linux only.
    package struct HeadlessMode: Sendable, Equatable {
        /// How many times as fast as the player's ``AVPlayer/rate`` says; from 0.01 to 100. Nil: as fast as decoding
        /// goes, whatever the rate.
        package var speed: Double?

        /// A headless mode of a speed; nil for as fast as decoding goes.
        package init(speed: Double? = 1) {
            self.speed = speed
        }

        /// As fast as decoding goes.
        package static let untimed = HeadlessMode(speed: nil)

        /// The mode that the environment variable `AVPLAYER_HEADLESS` asks for: a speed, or anything else for 1; nil when it
        /// is not set or empty.
        static func fromEnvironment(_ environment: [String: String]) -> HeadlessMode? {
            guard let text = environment["AVPLAYER_HEADLESS"], !text.isEmpty else { return nil }
            return text == "untimed" ? .untimed : HeadlessMode(speed: Double(text) ?? 1)
        }
    }
}
