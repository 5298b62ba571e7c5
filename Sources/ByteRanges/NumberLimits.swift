/// The largest numbers that Spool accepts from outside: from headers, the catalog, manifests and options.
///
/// Parsers reject larger numbers, or reduce them to the limit if a standard demands it. A sum or a difference of several
/// hundred accepted numbers therefore fits in an `Int64`.
package enum NumberLimits {
    /// The largest offset and the largest length of a resource, in bytes: 2^53, more than any disk holds.
    ///
    /// It is a multiple of the block size, and file offsets up to it fit every interface that takes them.
    package static let byteOffset: Int64 = 1 << 53

    /// The largest age or delay in seconds, and the largest distance of a date from 1970: 10,000 years.
    package static let seconds: Int64 = 10_000 * 31_556_952
}
