import ArgumentParser
import Spool
import SpoolHTTP
import SpoolProxy

/// How a command that failed ends: its lines on standard error, and its exit status.
struct ErrorReport {
    /// One sentence for each thing that went wrong; none where nobody is there to read it.
    private(set) var lines: [String] = []
    private(set) var status: Int32 = 1

    /// Reads what a command threw.
    ///
    /// - Parameter arguments: The command line, for errors about it.
    init(_ error: any Error, arguments: [String]) {
        switch error {
        case let failures as CommandFailures:
            let reports = failures.all.map { ErrorReport($0, arguments: arguments) }
            lines = reports.flatMap(\.lines)
        case let failure as CommandFailure where failure.code == .outputClosed: break
        case let failure as CommandFailure where failure.code == .usage:
            (lines, status) = ([failure.message], 64)
        case let failure as CommandFailure: lines = [failure.message]
        case let error as CacheError:
            lines = [[error.message, error.advice].compactMap(\.self).joined(separator: "; ")]
        case let error as UpstreamError: lines = [error.message]
        case let error as ProxyError: lines = [error.description]
        case is CancellationError: lines = ["interrupted; what has landed is kept"]
        default:
            status = SpoolCommand.exitCode(for: error).rawValue
            let message = SpoolCommand.message(for: error)
            lines = [status == 64 ? UsageError(message, arguments: arguments).text : message]
        }
    }
}

extension CacheError {
    /// The next step of a person at a terminal, where it does not follow from the sentence.
    fileprivate var advice: String? {
        switch code {
        case .directoryInUse:
            "wait for it or end it, or name another directory with --cache; ls, info, export and get of what is stored "
                + "work beside it"
        case .catalogTooNew: "use that version, or name another directory with --cache"
        case .catalogDamaged: "“spool verify” sets it aside and begins an empty one"
        case .notStored: "“spool ls” lists what is stored"
        case .incomplete: "“spool get” fetches the rest"
        case .originRefused where httpStatus == 401 || httpStatus == 403: "--header @FILE sends credentials"
        case _ where (underlying as? UpstreamError)?.underlying is RefusedDowngrade:
            "--allow-http-redirects follows it, unprotected"
        default: nil
        }
    }
}
