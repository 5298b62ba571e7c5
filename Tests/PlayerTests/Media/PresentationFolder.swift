import Foundation
import SpoolTesting

/// The folder that contains the presentations. Each presentation is created once in the temporary folder, and reused by
/// later runs.
actor PresentationFolder {
    static let shared = PresentationFolder()

    private var made: [Presentation: Task<Presentation.Files, any Error>] = [:]
    /// The folder. Its name contains the version of the recipes, which must be increased when a recipe changes.
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("spool-presentations-1")

    func files(of presentation: Presentation) async throws -> Presentation.Files {
        if let task = made[presentation] { return try await task.value }
        let folder = folder.appendingPathComponent("\(presentation)")
        let task = Task { try await Self.make(presentation, in: folder) }
        made[presentation] = task
        return try await task.value
    }

    private static func make(_ presentation: Presentation, in folder: URL) async throws -> Presentation.Files {
        if let sample = presentation.file {
            let file = try await sample.file(seconds: Presentation.seconds)
            return try await make(file.lastPathComponent, in: folder) { draft in
                try FileManager.default.copyItem(at: file, to: draft.appendingPathComponent(file.lastPathComponent))
            }
        }
        guard let (entry, arguments) = presentation.recipe, let ffmpeg = Tool("ffmpeg") else {
            throw Tool.Failed(description: "ffmpeg is needed, which makes \(presentation.rawValue)")
        }
        let film = try await SampleMedia.mp4.file(seconds: Presentation.seconds)
        return try await make(entry, in: folder) { draft in
            let key = draft.appendingPathComponent("stream.key")
            try Data((0..<16).map { UInt8($0 * 7) }).write(to: key)
            let info = "stream.key\n\(key.path)\n00112233445566778899aabbccddeeff\n"
            try Data(info.utf8).write(to: draft.appendingPathComponent("key.info"))
            let result = try await ffmpeg.run(
                ["-nostdin", "-v", "error", "-y", "-i", film.path, "-c", "copy"]
                    + arguments.map { $0 == "key.info" ? draft.appendingPathComponent($0).path : $0 }
                    + [draft.appendingPathComponent(entry).path])
            guard result.status == 0 else {
                throw Tool.Failed(description: "ffmpeg could not make \(presentation.rawValue): \(result.text)")
            }
        }
    }

    /// Creates the files in a folder with a temporary name, and then renames the folder.
    ///
    /// A folder with the final name is therefore always complete, even if a process is killed or several processes run.
    private static func make(
        _ entry: String, in folder: URL, _ body: (URL) async throws -> Void
    ) async throws -> Presentation.Files {
        if !FileManager.default.fileExists(atPath: folder.path) {
            let draft = folder.deletingLastPathComponent().appendingPathComponent(
                "\(folder.lastPathComponent)-\(ProcessInfo.processInfo.processIdentifier)")
            try FileManager.default.createDirectory(at: draft, withIntermediateDirectories: true)
            try await body(draft)
            if rename(draft.path, folder.path) != 0 {
                // Another process has created the same files in the meantime.
                try FileManager.default.removeItem(at: draft)
            }
        }
        return Presentation.Files(entry: "/" + entry, folder: folder)
    }
}
