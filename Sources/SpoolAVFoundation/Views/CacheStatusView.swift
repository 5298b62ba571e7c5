#if canImport(AVFoundation) && canImport(SwiftUI) && !os(watchOS)
public import Spool
public import SwiftUI

/// How full a cache is, and how much of what was played came out of it.
///
/// ```swift
/// List { CacheStatusView(cache) }
/// ```
///
/// Looked at once a second as long as it is seen; since the cache was opened.
public struct CacheStatusView: View {
    private let cache: MediaCache
    @State private var stored: Int64 = 0
    @State private var statistics = TransferStatistics()

    /// The state of a cache.
    public init(_ cache: MediaCache) { self.cache = cache }

    /// A bar, where there is a limit, and two lines.
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
