#if Proxy
import HTTPRanges
import NIOCore
import Spool
import SpoolStreams
import Synchronization

/// The rewritten bytes of large manifests that do not change, so that they are parsed once instead of for each request.
///
/// A result is used only for exactly the bytes from which it was created. Validators and dates do not show that two
/// users received the same manifest.
final class RewrittenManifests: Sendable {
    /// A rewritten manifest, with the information that is recorded each time it is sent.
    struct Entry: Sendable {
        let kind: ManifestKind
        /// The bytes that the origin sent.
        let received: [UInt8]
        /// The URL of the manifest, after redirects.
        let found: OriginURL
        /// The rewritten bytes. All clients share this buffer.
        let bytes: ByteBuffer
        let tag: EntityTag?
        /// The URLs of the keys that the manifest references.
        let keys: [OriginURL]
        /// One URL from each other origin that the manifest references.
        let named: [OriginURL]
        /// The tag for ``StreamKnowledge/hasMembers(of:tag:)``, or `nil` if no URLs are recorded.
        let membersTag: String?
        /// The memory that both forms occupy.
        let memory: ManifestMemory.Share
    }

    /// The minimum size of a manifest, in bytes. Parsing a smaller one costs little.
    static let minimumBytes = 64 << 10
    /// The maximum number of keys, and of origins, that a remembered manifest may reference.
    private static let referenceLimit = 100

    /// The maximum size of a remembered manifest in both forms, in bytes.
    private static let entryBytes = 16 << 20

    private let entries = Mutex(
        BoundedTable<String, Entry>(count: 64, bytes: 2 * entryBytes, entryBytes: entryBytes))

    /// Returns the result for these bytes, or `nil` if it is not remembered.
    func entry(for received: [UInt8], at found: OriginURL, _ call: OutgoingRequest) -> Entry? {
        guard received.count >= Self.minimumBytes, let entry = entries.withLock({ $0[Self.name(of: call)] }) else {
            return nil
        }
        return entry.found.description == found.description && entry.received == received ? entry : nil
    }

    /// Remembers a result, unless the manifest is too large, or references many keys or origins.
    ///
    /// - Returns: Whether the result is remembered.
    func note(_ entry: Entry, for call: OutgoingRequest) -> Bool {
        let name = Self.name(of: call)
        let bytes = name.utf8.count + entry.received.count + entry.bytes.readableBytes
        guard entry.keys.count <= Self.referenceLimit, entry.named.count <= Self.referenceLimit,
            bytes <= Self.entryBytes
        else { return false }
        entries.withLock { $0.note(entry, for: name, bytes: bytes) }
        return true
    }

    /// Returns the parts of a request that affect the result.
    private static func name(of call: OutgoingRequest) -> String {
        ["\(call.isReverse) \(call.isMoved)", call.prefix, call.url.description].joined(separator: "\n")
    }
}

/// The memory that manifests may occupy at the same time, for all clients together.
///
/// A manifest is in memory while it is received, rewritten, and sent. Slow origins and slow clients can take minutes.
final class ManifestMemory: Sendable {
    /// The default of ``limit``, in bytes.
    static let defaultLimit = 256 << 20
    /// The maximum size of a small manifest, in bytes.
    private static let smallBytes = 256 << 10

    /// The maximum number of bytes.
    let limit: Int
    private let used = Mutex(0)

    init(limit: Int = ManifestMemory.defaultLimit) { self.limit = limit }

    /// The number of bytes that manifests occupy now.
    var usedBytes: Int { used.withLock { $0 } }

    /// The memory for one manifest. It is returned when the last response that uses the manifest has been sent.
    final class Share: Sendable {
        private let memory: ManifestMemory
        private let count = Mutex(0)

        init(of memory: ManifestMemory) { self.memory = memory }

        deinit {
            let bytes = count.withLock { $0 }
            memory.used.withLock { $0 -= bytes }
        }

        /// Changes the size of the share, in bytes. Small manifests always get memory, so that clients of large ones
        /// can't prevent the playback of all other streams.
        ///
        /// - Throws: `RequestFailure` with status 503 if too little memory is left. The size then remains the same.
        func resize(to bytes: Int) throws {
            try count.withLock { count in
                let isAllowed = memory.used.withLock { used in
                    guard bytes <= max(count, ManifestMemory.smallBytes) || used - count + bytes <= memory.limit else {
                        return false
                    }
                    used += bytes - count
                    return true
                }
                guard isAllowed else { throw ManifestMemory.exhausted }
                count = bytes
            }
        }
    }

    private static let exhausted = RequestFailure(
        503, "too many large manifests are being sent at the same time", retryAfter: 5)
}
#endif
