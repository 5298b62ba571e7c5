/// Changes how an origin responds to some of the requests for a resource: the seam for misbehaviour.
///
/// The server itself knows no misbehaviour. It shows a rule the request and the resource before it decides, and the
/// response before it is sent; the test kit's misbehaviours are made of these two.
public struct OriginRule: Sendable {
    /// Changes what is asked and what is there, before the response is decided.
    package typealias Prepare = @Sendable (inout OriginRequest, inout OriginResource) -> Void
    /// Changes the response that was decided, before its framing is.
    package typealias Revise = @Sendable (inout OriginResponse) -> Void

    /// The requests for the resource, counted from 0, that it applies to.
    public var requests: Range<Int>
    let prepare: Prepare
    let revise: Revise

    /// A rule for the half-open range `requests`.
    package init(
        _ requests: Range<Int>, prepare: @escaping Prepare = { _, _ in }, revise: @escaping Revise = { _ in }
    ) {
        self.requests = requests
        self.prepare = prepare
        self.revise = revise
    }
}
