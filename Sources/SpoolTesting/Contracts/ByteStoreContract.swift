import Foundation
public import Spool

/// The contract of every ``/SpoolStorage/ByteStore``, as test cases for any implementation: the package's own two
/// stores, and yours.
///
/// The cases do not depend on a test framework. Each case throws an error if its rule is violated, and needs its own
/// empty store.
///
/// ```swift
/// @Test(arguments: ByteStoreContract.cases)
/// func keepsTheContract(of case: ByteStoreContract.Case) throws { try `case`.run(on: MyStore()) }
/// ```
public enum ByteStoreContract {
    /// One rule of the contract.
    public struct Case: Sendable, CustomStringConvertible {
        /// The rule, as a sentence.
        public let description: String
        private let body: @Sendable (any ByteStore) throws -> Void

        init(_ description: String, body: @escaping @Sendable (any ByteStore) throws -> Void) {
            (self.description, self.body) = (description, body)
        }

        /// Checks the rule on an empty store, and blocks the calling thread.
        ///
        /// - Throws: `ContractFailure` if the store violates the rule, or an unexpected error from the store.
        public func run(on store: any ByteStore) throws { try body(store) }
    }

    /// All cases.
    public static let cases: [Case] =
        StoredFileContract.cases.map { rule in
            Case(rule.description) { store in try rule.run(try store.create(name(0))) }
        } + [
            Case("a file exists from its creation to its removal") { store in
                try check(try store.open(name(0), isWritable: true) == nil, "a file exists that was not created")
                _ = try store.create(name(0))
                try check(try store.open(name(0), isWritable: false) != nil, "a created file does not exist")
                try check(try store.contains(name(0)), "the store does not contain a created file")
                try check(try store.open(name(1), isWritable: false) == nil, "another file exists, too")
                try check(try !store.contains(name(1)), "the store contains a different file")
                try check(try store.remove(name(0)), "the store did not find the file to remove")
                try check(try store.open(name(0), isWritable: true) == nil, "a removed file still exists")
                try check(try !store.remove(name(0)), "the store reported that it removed a missing file")
                try checkEqual(try store.create(name(0)).size(), 0, "the size of a new file with that name")
            },
            Case("open files with the same name share their bytes, and creating a file again keeps them") { store in
                let first = try store.create(name(0))
                try StoredFileContract.write("first", to: first, at: 0)
                let second = try store.create(name(0))
                try checkEqual(try StoredFileContract.text(of: second), "first", "the second file's bytes")
                try StoredFileContract.write("again", to: second, at: 0)
                try checkEqual(try StoredFileContract.text(of: first), "again", "the first file's bytes")
                let third = try store.open(name(0), isWritable: false)
                try checkEqual(try third.map { try StoredFileContract.text(of: $0) }, "again", "the third file's bytes")
            },
            Case("bytes remain while the file is not open") { store in
                try StoredFileContract.write("kept", to: store.create(name(0)), at: 0)
                let file = try store.open(name(0), isWritable: true)
                try checkEqual(try file.map { try StoredFileContract.text(of: $0) }, "kept", "the contents")
            },
            Case("a removed file is missing when opened again, and readable while it is open") { store in
                let file = try store.create(name(0))
                try StoredFileContract.write("kept", to: file, at: 0)
                try check(try store.remove(name(0)), "the store did not find the file to remove")
                try checkEqual(try StoredFileContract.text(of: file), "kept", "the open file's bytes")
                let next = try store.create(name(0))
                try StoredFileContract.write("next", to: next, at: 0)
                try checkEqual(
                    try StoredFileContract.text(of: file), "kept", "the open file after a new one was created")
            },
            Case("each file contains only its own bytes") { store in
                let files = try (0..<20).map { try store.create(name($0)) }
                for (index, file) in files.enumerated() { try StoredFileContract.write("\(index)", to: file, at: 0) }
                for (index, file) in files.enumerated() {
                    try checkEqual(try StoredFileContract.text(of: file), "\(index)", "the bytes of a file")
                }
            },
            Case("each existing file is listed once, and the listing ends on request") { store in
                try checkEqual(try names(in: store), [], "the files of an empty store")
                for index in 0..<20 { _ = try store.create(name(index)) }
                for index in 5..<10 { try store.remove(name(index)) }
                let expected = (Array(0..<5) + Array(10..<20)).map(name).sorted()
                try checkEqual(try names(in: store).sorted(), expected, "the listed files")
                var count = 0
                try store.forEachName { _ in
                    count += 1
                    return count < 3
                }
                try checkEqual(count, 3, "the number of files listed before the end")
            },
            Case("files may be removed while they are listed") { store in
                for index in 0..<20 { _ = try store.create(name(index)) }
                try store.forEachName { try store.remove($0) }
                try checkEqual(try names(in: store), [], "the remaining files")
            },
            Case("the reported space is plausible") { store in
                guard let space = try store.volumeSpace() else { return }
                try check(space.size > 0 && (0...space.size).contains(space.free), "\(space) is not plausible")
            },
        ]

    /// Returns a name like the names of files in a cache.
    private static func name(_ index: Int) -> String {
        let digits = String(UInt64(index) &* 0x9E37_79B9_7F4A_7C15, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits + String(repeating: "5", count: 16)
    }

    private static func names(in store: any ByteStore) throws -> [String] {
        var names: [String] = []
        try store.forEachName {
            names.append($0)
            return true
        }
        return names
    }
}
