#if Proxy
public import Foundation
import Spool

/// What is stored of one variant of an HLS stream.
///
/// A player measures how fast bytes come from this machine, and may leave a stored variant for one that is not. To hold it
/// there, cap it: `item.preferredPeakBitRate = Double(variant.bitRate)`.
public struct HLSStoredVariant: Sendable, Hashable {
    /// The variant's media playlist; of a stream without variants, the stream's own.
    public internal(set) var url: URL
    /// What the stream says that it needs at most, in bits per second; nil for a stream without variants.
    public internal(set) var bitRate: Int64?
    /// The picture's size; nil where the stream tells none.
    public internal(set) var resolution: HLSResolution?
    /// Its codecs, as RFC 6381 writes them; nil where the stream tells none.
    public internal(set) var codecs: String?
    /// How many segments it has.
    public internal(set) var segmentCount: Int
    /// How many of them are stored, every byte.
    public internal(set) var storedSegments: Int
    /// Whether all is there that its playlist names. Sounds and subtitles that are in playlists of their own are not looked at.
    public internal(set) var isComplete: Bool
}
#endif
