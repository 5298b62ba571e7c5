import CLibFuzzer

/// Runs libFuzzer on the header parsers. libFuzzer calls ``fuzzOneInput(_:_:)`` with inputs that cover more and more
/// code.
///
/// A crash or a failed `precondition` of a check is a finding. libFuzzer then writes the input to `crash-…`.
@main struct FuzzHTTPRanges {
    static func main() {
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        _ = LLVMFuzzerRunDriver(&count, &arguments) { fuzzOneInput($0, $1) }
    }
}

/// Checks one input. The first byte selects the checks, and the rest is the text to parse. libFuzzer calls the function
/// by this name.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: start == nil ? 0 : count)
    guard let kind = bytes.first else { return 0 }
    let text = bytes.dropFirst()
    switch kind {
    case 64..<128: BoundaryChecks.run(text)
    case _ where kind % 2 == 0: ParserChecks.run(String(decoding: text, as: UTF8.self))
    default: EvaluationChecks.run(text)
    }
    return 0
}
