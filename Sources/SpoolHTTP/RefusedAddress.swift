/// Lies beneath the error of a request that would have gone to an address that
/// ``HTTPUpstream.Configuration/allowsAddress`` refuses.
package struct RefusedAddress: Error {
    package init() {}
}
