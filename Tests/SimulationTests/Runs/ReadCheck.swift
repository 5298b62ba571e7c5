import Foundation
import Spool
import SpoolTesting

/// A comparison of the bytes that a reader delivers with the versions at the origin.
struct ReadCheck {
    let media: SimulatedMedia
    let range: MediaRange
    private var candidates: [PatternBytes]
    private var position: Int64?

    let viewer: Viewer

    init(_ media: SimulatedMedia, _ range: MediaRange, _ viewer: Viewer) {
        self.media = media
        self.range = range
        self.viewer = viewer
        candidates = media.versions(for: viewer)
    }

    /// The position of the reader, for messages.
    var place: String { "\(media.path) \(range) at \(position.map(String.init) ?? "its start")" }

    /// Checks a chunk, and returns a finding if it is wrong.
    mutating func take(_ chunk: MediaChunk) -> Finding? {
        if chunk.data.isEmpty { return Finding(kind: .wrongPlace, text: "\(place) got no bytes in \(chunk.range)") }
        let isStart = position == nil
        if let position, position != chunk.offset {
            return Finding(kind: .wrongPlace, text: "\(place) continued at \(chunk.offset)")
        }
        candidates = candidates.filter { version in
            // The start of a suffix is determined when the reader opens. The version may change before the reader
            // delivers a byte.
            if isStart, !media.versions.contains(where: { start(in: $0) == chunk.offset }) { return false }
            if chunk.range.upperBound > end(in: version) { return false }
            return chunk.data.withUnsafeBytes { version.firstMismatch(in: $0, at: chunk.offset) == nil }
        }
        if candidates.isEmpty { return Finding(kind: .wrongBytes, text: "\(place) got \(chunk.range)") }
        position = chunk.range.upperBound
        return nil
    }

    /// Checks that the reader may end at its position, and returns a finding if it may not.
    func end() -> Finding? {
        let isEnd = candidates.contains { version in
            (position ?? start(in: version)) == end(in: version)
                || position == nil && end(in: version) <= start(in: version)
        }
        return isEnd ? nil : Finding(kind: .wrongPlace, text: "\(place) ended")
    }

    private func start(in version: PatternBytes) -> Int64 {
        switch range {
        case .from(let offset): offset
        case .bytes(let bytes): bytes.lowerBound
        case .suffix(let count): max(0, version.length - count)
        }
    }

    private func end(in version: PatternBytes) -> Int64 {
        if case .bytes(let bytes) = range { return min(bytes.upperBound, version.length) }
        return version.length
    }

    /// Returns whether the plan and previous events explain an error.
    func explains(_ error: CacheError, in life: CacheLifetime) -> Bool {
        let plan = life.world.plan
        let touchesFailingPlace = media.truncationOffset.map { place in
            !media.hasRanges || media.versions.contains { place / 65_536 * 65_536 < end(in: $0) }
        }
        switch error.code {
        case .closed: return life.isClosing
        case .resourceChanged:
            return life.world.origin.hasChanged(media) || life.wasRemoved(media) || plan.damagesCatalog
        case .originUnavailable:
            return plan.faults.isAny || plan.chores.contains(.outage) || touchesFailingPlace ?? false
        case .originErrorStatus: return viewer.isRefused
        case .unsatisfiableRange:
            // A suffix is counted from the end of the version that is known when the reader opens.
            let changesLength = Set(media.versions.map(\.length)).count > 1 && life.world.origin.hasChanged(media)
            let isUnknown = !media.statesLength || changesLength || plan.damagesCatalog
            if isSuffix, isUnknown { return true }
            return media.versions.contains { start(in: $0) >= $0.length }
        default: return false
        }
    }

    var isSuffix: Bool { if case .suffix = range { true } else { false } }
}
