import Foundation
import SpoolAVFoundation

/// The results of all probes on one machine, as JSON and as Markdown for an issue.
struct Report: Codable, Sendable {
    /// The outcome of one probe.
    struct Finding: Codable, Sendable {
        /// The possible outcomes of a probe.
        enum State: String, Codable, Sendable {
            /// The probe has recorded a result.
            case recorded
            /// An API is not available on the platform, or no program can cause an event.
            case unavailable = "not available on this platform"
            /// The probe did not end within its time limit.
            case timedOut = "timed out"
            /// The probe failed.
            case failed
        }

        /// The number of the question.
        var number: Int
        var question: String
        var state: State
        /// The result as a sentence, or the reason why there is no result.
        var result: String
        /// Further observations, in order.
        var details: [String]
        /// The part of the platform that the result describes.
        var source: String
        /// The duration of the probe, in seconds.
        var seconds: Double
    }

    /// The operating system and its version.
    var system: String
    /// The model of the machine.
    var model: String
    /// The AVFoundation implementation that played the media.
    var avFoundation: String
    /// The results, sorted by number.
    var findings: [Finding] = []
    /// The loading requests of the player, by the name of the media.
    var traces: [String: LoadingTrace] = [:]

    /// The name of the report's files, without an extension.
    var name: String {
        let words = "report-\(system)-\(model)".map { $0.isLetter && $0.isASCII || $0.isNumber || $0 == "." ? $0 : "-" }
        return String(words).split(separator: "-").joined(separator: "-")
    }

    /// Returns the report as JSON, with sorted keys.
    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }

    /// The report as Markdown.
    var markdown: String {
        var lines = [
            "# Spool report for \(system), \(model)", "",
            "Media was played by \(avFoundation).", "",
            "| | question | result | implementation |", "|---|---|---|---|",
        ]
        for finding in findings {
            let result = finding.state == .recorded ? finding.result : "\(finding.state.rawValue): \(finding.result)"
            lines.append("| \(finding.number) | \(finding.question) | \(Self.cell(result)) | \(finding.source) |")
        }
        for finding in findings where !finding.details.isEmpty {
            lines += ["", "## \(finding.number). \(finding.question)", ""]
            lines += finding.details.map { "- \($0)" }
        }
        for (name, trace) in traces.sorted(by: { $0.key < $1.key }) {
            lines += ["", "## Loading requests of \(name)", "", "```"]
            lines += trace.events.map(\.line)
            lines.append("```")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func cell(_ text: String) -> String {
        text.replacing("|", with: "\\|").replacing("\n", with: " ")
    }

    /// Writes the report as JSON and Markdown to a directory, which is created if it is missing.
    func write(to directory: URL) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try json().write(to: directory.appending(path: name + ".json"))
        try Data(markdown.utf8).write(to: directory.appending(path: name + ".md"))
    }
}

extension LoadingTrace.Event {
    /// The event as one line of text.
    var line: String {
        let start = String(format: "%7.3f s  %d  ", time, request) + kind.rawValue
        guard let requested else { return start + (bytes.map { ", \($0) bytes delivered" } ?? "") }
        let range = requested.offset.map { offset in
            let end = requested.length.map { String(offset + $0 - 1) } ?? ""
            return " \(offset)–\(end)" + (requested.toEnd ? " (to the end)" : "")
        }
        let types = requested.allowedTypes.map { ", allowed types: " + $0.joined(separator: " ") } ?? ""
        return start + (requested.information ? " type and length," : "") + (range ?? "") + types
    }
}
