import Foundation
import SpoolTesting
import Testing

@Suite("Output files", .timeLimit(.minutes(10)))
struct OutputFileTests {
    private static let media = PatternBytes(seed: 5, length: 500_000)

    private func withStored(_ body: (SpoolProcess, _ url: String) async throws -> Void) async throws {
        try await withOrigin(["/a": OriginResource(.pattern(Self.media)), "/b": .pattern(1000)]) { origin, spool in
            let url = origin.url("/a").absoluteString
            #expect(try await spool.run("get", url).status == 0)
            try await body(spool, url)
        }
    }

    private func attributes(_ file: URL) throws -> [FileAttributeKey: Any] {
        try FileManager.default.attributesOfItem(atPath: file.path)
    }

    @Test("E73: export to a directory or a link fails, and does not change the directory or the link's target")
    func exportOntoDirectory() async throws {
        try await withStored { spool, url in
            try FileManager.default.createDirectory(at: spool.file("folder"), withIntermediateDirectories: false)
            try Data("mine".utf8).write(to: spool.file("victim"))
            try FileManager.default.createSymbolicLink(
                atPath: spool.file("link").path, withDestinationPath: "victim")
            for name in ["folder", "link"] {
                let result = try await spool.run("export", url, name)
                #expect(result.status == 1 && result.complaints.count == 1 && result.errors.contains(name))
            }
            #expect(try await spool.run("get", url, "--output", "folder").status == 1)
            #expect(
                Set(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path))
                    == ["cache", "folder", "link", "victim"])
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.file("folder").path).isEmpty)
            #expect(try Data(contentsOf: spool.file("victim")) == Data("mine".utf8))
        }
    }

    @Test("E73: a partial file that is a link or a pipe, or contains other data, causes an error and is not changed")
    func partialInTheWay() async throws {
        try await withStored { spool, url in
            try Data("mine".utf8).write(to: spool.file("victim"))
            try FileManager.default.createSymbolicLink(
                atPath: spool.file("linked.partial").path, withDestinationPath: "victim")
            try FileManager.default.linkItem(at: spool.file("victim"), to: spool.file("hard.partial"))
            try Data("mine".utf8).write(to: spool.file("foreign.partial"))
            // This file starts with the bytes of the media, but is longer.
            try (Self.media.data + Data("more".utf8)).write(to: spool.file("longer.partial"))
            #expect(mkfifo(spool.file("pipe.partial").path, 0o600) == 0)
            let before = try FileManager.default.contentsOfDirectory(atPath: spool.folder.path).sorted()
            for name in ["linked", "hard", "foreign", "longer", "pipe"] {
                let result = try await spool.run("get", url, "--output", name)
                #expect(result.status == 1 && result.complaints.count == 1, "\(name): \(result.errors)")
                #expect(result.errors.contains("\(name).partial") && result.errors.contains("not a partial download"))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path).sorted() == before)
            for name in ["victim", "foreign.partial"] {
                #expect(try Data(contentsOf: spool.file(name)) == Data("mine".utf8))
            }
            #expect(try Data(contentsOf: spool.file("longer.partial")).count == 500_004)
        }
    }

    @Test("E73: a partial file that a killed command left is completed if it contains the resource's first bytes")
    func leftover() async throws {
        try await withStored { spool, url in
            try Self.media.data.prefix(300_001).write(to: spool.file("a.partial"))
            #expect(try await spool.run("get", url, "--output", "a").status == 0)
            #expect(try Data(contentsOf: spool.file("a")) == Self.media.data)
            #expect(!FileManager.default.fileExists(atPath: spool.file("a.partial").path))
        }
    }

    @Test("E73: a replaced file retains its mode, and output to a link replaces the contents of the link's target")
    func mode() async throws {
        try await withStored { spool, url in
            for (name, arguments) in [
                ("got", ["get", url, "--output", "got"]), ("exported", ["export", url, "exported"]),
                ("target", ["get", url, "--output", "link"]),
            ] {
                try Data("old".utf8).write(to: spool.file(name))
                try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: spool.file(name).path)
                if name == "target" {
                    try FileManager.default.createSymbolicLink(
                        atPath: spool.file("link").path, withDestinationPath: name)
                }
                #expect(try await spool.run(arguments).status == 0)
                #expect(try Data(contentsOf: spool.file(name)) == Self.media.data)
                #expect(try attributes(spool.file(name))[.posixPermissions] as? Int == 0o640)
            }
            #expect(try attributes(spool.file("link"))[.type] as? FileAttributeType == .typeSymbolicLink)
        }
    }

    @Test("E73: rm with several URLs removes the stored media, and reports each URL that is not stored")
    func removesWhatItCan() async throws {
        try await withStored { spool, url in
            let result = try await spool.run("rm", "http://h/1?k=secret", url, "http://h/2", "--json")
            struct Report: Decodable { var removed: [String], bytes: Int64 }
            let report: Report = try result.json()
            #expect(report.removed == [url] && report.bytes == 500_000)
            #expect(result.status == 1 && result.complaints.count == 2)
            for (line, name) in zip(result.complaints, ["http://h/1", "http://h/2"]) {
                #expect(line.hasPrefix("error: ") && line.contains(name) && !line.contains("secret"))
            }
            #expect(try await spool.run("ls", "--json").text == "[]\n")
        }
    }

    @Test("E73: if standard output is on a full disk, each command reports a one-line error")
    func fullOutput() async throws {
        guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
        try await withStored { spool, url in
            for arguments in [
                "ls", "ls --json", "info \(url)", "get \(url)", "get \(url) --output -", "verify", "--help", "help get",
                "--version", "pin \(url)", "rm --all",
            ] {
                let result = try await spool.shell("\(SpoolProcess.executable.path) \(arguments) >/dev/full")
                #expect(result.status == 1, "\(arguments)")
                let sentence = "error: standard output can't be written: no space left on device\n"
                #expect(result.errors == sentence, "\(arguments)")
            }
        }
    }

    @Test("E73: if the process that reads standard output exits, the command ends without a message")
    func closedPipe() async throws {
        try await withStored { spool, url in
            for arguments in ["get \(url) --output -", "--help", "info \(url)"] {
                let command = "{ \(SpoolProcess.executable.path) \(arguments); echo $? >status; } | true"
                let result = try await spool.shell(
                    "\(command); while ! test -s status; do :; done; cat status; rm status")
                // A short text may be written to the pipe before the other process exits.
                #expect(["0\n", "1\n"].contains(result.text), "\(arguments)")
                #expect(result.errors.isEmpty, "\(arguments): \(result.errors)")
            }
        }
    }

    @Test("E73: if standard output or standard error is closed, output is not written to a file in the cache")
    func closedDescriptors() async throws {
        try await withStored { spool, url in
            for arguments in ["get \(url) --output -", "info \(url)", "ls", "verify"] {
                let result = try await spool.shell("\(SpoolProcess.executable.path) \(arguments) >&-")
                #expect(result.status == 1, "\(arguments)")
                #expect(
                    result.errors == "error: standard output can't be written: bad file descriptor\n", "\(arguments)")
            }
            for closed in ["2>&-", "<&- >&- 2>&-"] {
                let none = try await spool.shell("\(SpoolProcess.executable.path) info \(url)x \(closed)")
                #expect(none.status == 1 && none.output.isEmpty && none.errors.isEmpty, "\(closed)")
            }
            let verified = try await spool.run("verify")
            #expect(verified.status == 0 && verified.text.contains("0 damaged"), "\(verified.text)")
        }
    }

    @Test("Output files are not written to the cache directory, whatever their path")
    func withinCache() async throws {
        try await withStored { spool, url in
            let folder = spool.file("cache").path
            symlink("cache/catalog.sqlite", spool.file("link").path)
            symlink("cache", spool.file("other").path)
            let before = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            for name in [
                "cache/new", "cache/catalog.sqlite", "cache/media/../lock", "link", "other/new", "\(folder)/a",
            ] {
                for arguments in [["get", url, "--output", name], ["export", url, name]] {
                    let result = try await spool.run(arguments)
                    #expect(result.status == 1 && result.complaints.count == 1, "\(arguments): \(result.errors)")
                    #expect(
                        result.errors.contains("“\(name)” can't be written, because it is in the cache's own directory")
                    )
                }
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == before)
            #expect(try await spool.run("verify").text.contains(" 0 damaged"))
        }
    }

    @Test("A file name that is not UTF-8 is rejected, and no file is written")
    func otherThanUTF8() async throws {
        try await withStored { spool, url in
            let command = SpoolProcess.executable.path
            let result = try await spool.shell("\(command) get \(url) --output \"$(printf 'a\\377b')\"")
            #expect(result.status == 64, "\(result.errors)")
            #expect(result.errors.hasPrefix("error: argument 4 is not UTF-8 text"), "\(result.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path) == ["cache"])
        }
    }
}
