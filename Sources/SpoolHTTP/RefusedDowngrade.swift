/// Lies beneath the error of a redirect from https to http that was not followed since
/// ``HTTPUpstream.Configuration/allowsRedirectsToHTTP`` is false: whoever has an option for it can name it.
package struct RefusedDowngrade: Error {
    package init() {}
}
