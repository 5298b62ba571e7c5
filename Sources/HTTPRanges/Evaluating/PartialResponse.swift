/// Evaluates an origin's responses: decides whether the bytes that follow may land, and where.
///
/// Players ask for parts of a file, and the response may be another part, the whole, another version, or contradict itself.
/// ``evaluate(_:askedFrom:askedEnd:stored:rule:)`` reads a response's head and says what to do before a byte of its body is
/// taken. It is pure and total: the same head gets the same decision, and no head traps.
package enum PartialResponse {
    /// Where a response's body belongs.
    package struct Landing: Sendable, Hashable {
        /// Where the first byte of the body belongs: always what the response itself says, never what was asked for.
        package var offset: Int64
        /// Where the body ends; bytes that come beyond it must not land. Nil if only the end of the body tells: then
        /// a body that ends in good order at `offset + n` tells the length of a whole, one that is interrupted tells nothing.
        package var end: Int64?
        /// The version that the bytes are of. Where they join stored ones, it is the two descriptions together, to be
        /// kept in place of the stored one.
        package var version: ResourceVersion
        /// A sentence, if the response contradicts itself and only what is consistent lands: worth an event. Else nil.
        package var discrepancy: String?

        /// A landing.
        package init(offset: Int64, end: Int64?, version: ResourceVersion, discrepancy: String? = nil) {
            self.offset = offset
            self.end = end
            self.version = version
            self.discrepancy = discrepancy
        }
    }

    /// The use that a response can be put to.
    package enum Decision: Sendable, Hashable {
        /// The body belongs to the stored version, or nothing was stored.
        case land(Landing)
        /// The body is of another version than the stored one, or can't be shown to be of the same: let it land, but
        /// in a generation of its own.
        case newGeneration(Landing)
        /// Nothing of the body may land, and the stored version can't be gone on with: ask again from 0 without
        /// `If-Range`; and without `Range`, unless ``ResourceVersion/canBeAssembled(under:)``. The sentence says why.
        case restart(String)
        /// 304: the stored version is the current one.
        case notModified
        /// 416 and nothing contradicts what is stored: there are no such bytes. The length, if it is known.
        case unsatisfiable(length: Int64?)
        /// The response brings nothing; what is stored stays as it is.
        case refuse(Refusal)
    }

    /// Why a response brings nothing.
    package struct Refusal: Sendable, Hashable {
        /// The remedy, if there is one.
        package enum Kind: Sendable, Hashable {
            /// 401, 403, 407, 410: fresh credentials or a fresh URL may.
            case credentials
            /// 408, 425, 429, 5xx: waiting may, as long as the origin says, if it does.
            case retry(after: RetryAfter?)
            /// Any other status that has no media in it: nothing will.
            case status
            /// A response that contradicts itself or what was asked: asking otherwise may.
            case malformed
        }

        /// The remedy, if there is one.
        package var kind: Kind
        /// The response's status code.
        package var status: Int
        /// A sentence that says what is wrong with the response; it holds no URL and no credential.
        package var reason: String

        /// A refusal.
        package init(kind: Kind, status: Int, reason: String) {
            self.kind = kind
            self.status = status
            self.reason = reason
        }
    }
}
