@testable import SpoolStreams

/// Checks the parsers and rewriters of manifests with one input. libFuzzer calls the function by this name, with inputs
/// that cover more and more code. A crash, a failed `precondition` of a check, or a timeout is a finding.
///
/// The first byte selects the checks and the URL of the manifest, and the rest is the text to parse.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : count))
    guard let kind = bytes.first else { return 0 }
    let text = Array(bytes.dropFirst())
    _ = ManifestKind(prefix: text)
    let place = Place(number: kind >> 3)
    switch kind % 4 {
    case 0: AddressChecks.run(String(decoding: text, as: UTF8.self), place)
    case 1: DASHChecks.run(text, place)
    default: HLSChecks.run(text, place)
    }
    return 0
}
