#if canImport(AVFoundation) && canImport(SwiftUI) && !os(watchOS)
public import Spool
public import SwiftUI

/// A scrubber that shows the stored, buffered and played ranges of the current media.
///
/// ```swift
/// StoredRangesView(player)
///     .frame(height: 28)
/// ```
///
/// During a drag, the view shows the time under the finger, and the player seeks to nearby times. On release, the
/// player seeks to the exact time. Stored ranges are byte ranges, so their positions on the bar are exact only for
/// media with a constant bit rate. The colors follow the tint and the foreground style. VoiceOver reads the time, which
/// users can adjust in steps of ten seconds.
public struct StoredRangesView: View {
    private let player: CachingPlayer
    @State private var dragged: Double?

    /// Creates a scrubber for a player.
    public init(_ player: CachingPlayer) { self.player = player }

    /// A bar that shows the ranges and reacts to drags.
    public var body: some View {
        GeometryReader { geometry in
            bar.contentShape(Rectangle()).modifier(Dragging(changed: { drag(to: $0, in: geometry.size) }, ended: drop))
        }
        .accessibilityElement()
        .accessibilityLabel(Text("Position"))
        .accessibilityValue(spokenTime)
        .accessibilityAdjustableAction { direction in
            let step = direction == .increment ? 10.0 : -10.0
            Task { await player.seek(to: player.currentTime + step) }
        }
    }

    private var spokenTime: Text {
        let time = Int(player.currentTime)
        guard let duration = player.duration else { return Text("\(time) seconds") }
        return Text("\(time) of \(Int(duration)) seconds")
    }

    private var bar: some View {
        let (stored, buffered, played) = (player.storedRanges, player.bufferedRanges, played)
        return Canvas { context, size in
            let track = CGRect(x: 0, y: size.height / 2 - 2, width: size.width, height: 4)
            func fill(_ range: ClosedRange<Double>, _ opacity: Double) {
                let part = CGRect(
                    x: range.lowerBound * size.width, y: track.minY,
                    width: max((range.upperBound - range.lowerBound) * size.width, 1), height: track.height)
                context.fill(Path(roundedRect: part, cornerRadius: 2), with: .style(.foreground.opacity(opacity)))
            }
            fill(0...1, 0.12)
            for range in stored { fill(range, 0.2) }
            for range in buffered { fill(range, 0.3) }
            let head = played * size.width
            context.fill(
                Path(roundedRect: CGRect(x: 0, y: track.minY, width: head, height: 4), cornerRadius: 2),
                with: .style(.tint))
            context.fill(
                Path(ellipseIn: CGRect(x: head - 6, y: size.height / 2 - 6, width: 12, height: 12)), with: .style(.tint)
            )
        }
    }

    /// The current position, from 0 to 1.
    private var played: Double {
        if let dragged { return dragged }
        guard let duration = player.duration, duration > 0 else { return 0 }
        return min(max(player.currentTime / duration, 0), 1)
    }

    private func drag(to point: CGPoint, in size: CGSize) {
        guard let duration = player.duration, size.width > 0 else { return }
        let fraction = min(max(point.x / size.width, 0), 1)
        dragged = fraction
        Task { await player.seek(to: fraction * duration, isExact: false) }
    }

    private func drop() {
        guard let fraction = dragged, let duration = player.duration else { return }
        Task {
            await player.seek(to: fraction * duration)
            dragged = nil
        }
    }
}

/// A modifier that adds a drag gesture on platforms that support it.
private struct Dragging: ViewModifier {
    let changed: (CGPoint) -> Void
    let ended: () -> Void

    func body(content: Content) -> some View {
        #if os(tvOS)
        content
        #else
        content.gesture(
            DragGesture(minimumDistance: 0).onChanged { changed($0.location) }.onEnded { _ in ended() })
        #endif
    }
}

/// A view that shows the used part of a cache's capacity, and the numbers of bytes delivered from the cache and fetched
/// from origins.
///
/// ```swift
/// List { CacheStatusView(cache) }
/// ```
///
/// The view is updated once a second while it is visible. Delivered and fetched bytes are counted from the time the
/// cache was opened.
public struct CacheStatusView: View {
    private let cache: MediaCache
    @State private var stored: Int64 = 0
    @State private var statistics = TransferStatistics()

    /// Creates a view of the state of a cache.
    public init(_ cache: MediaCache) { self.cache = cache }

    /// A bar if the cache has a limit, and two lines of text.
    public var body: some View {
        VStack(alignment: .leading, spacing: 4) {
            if let capacity = cache.capacity, capacity > 0 {
                ProgressView(value: min(Double(stored) / Double(capacity), 1))
                Text("\(bytes(stored)) of \(bytes(capacity)) used")
            } else {
                Text("\(bytes(stored)) used")
            }
            Text("\(bytes(statistics.bytesFromCache)) from the cache, \(bytes(statistics.bytesFromOrigin)) fetched")
                .font(.footnote).foregroundStyle(.secondary)
        }
        .task {
            while !Task.isCancelled {
                (stored, statistics) = (cache.storedByteCount, cache.statistics)
                do { try await Task.sleep(for: .seconds(1)) } catch { return }
            }
        }
    }

    private func bytes(_ count: Int64) -> String { count.formatted(.byteCount(style: .file)) }
}
#endif
