#if Proxy
import HTTPRanges
import NIOCore
import Spool
import SpoolHTTP
import SpoolStreams
import Synchronization

/// The rewritten bytes of large manifests that do not change, so that they are parsed once instead of for each request.
///
/// A result is used only for exactly the bytes from which it was created. Matching validators and dates do not prove
/// that two users received the same manifest.
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

    /// The minimum size of a manifest, in bytes. Parsing smaller manifests is cheap.
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
        entries.withLock { $0.record(entry, for: name, bytes: bytes) }
        return true
    }

    /// Returns the parts of a request that affect the result.
    private static func name(of call: OutgoingRequest) -> String {
        ["\(call.isReverse) \(call.isMoved)", call.prefix, call.url.description].joined(separator: "\n")
    }
}
#endif
