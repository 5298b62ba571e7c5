package import Crypto
import Foundation
import GRDB

extension Catalog {
    /// Bytes in all recorded blocks. Kept up to date with every write, and counted here only if it can't be right.
    package func storedBytes() throws -> Int64 { try sum("storedBytes") }

    /// Bytes that the rows of all generations take; as ``storedBytes()``. 0 if an older version wrote the catalog, and it is
    /// only read.
    func rowBytes() throws -> Int64 { version < 6 ? 0 : try sum("rowBytes") }

    /// The sum of a column of the generations, as it is noted under the column's name.
    private func sum(_ name: String) throws -> Int64 {
        let (sum, isPossible) = try read { db in
            let sum = try Self.number(name, db) ?? -1
            if Self.byteCount(sum) == sum { return (sum, true) }
            return (try Self.count(name, db), false)
        }
        if !isPossible, isWritable { try write { db in try Self.set(name, to: sum.databaseValue, db) } }
        return sum
    }

    /// Counts them, whatever is noted, and notes that.
    ///
    /// - Returns: By how much there are more than was noted.
    func recountStoredBytes() throws -> Int64 { try recount("storedBytes") }

    /// The same for the bytes of rows.
    func recountRowBytes() throws -> Int64 { try recount("rowBytes") }

    private func recount(_ name: String) throws -> Int64 {
        try write { db in
            let noted = Self.byteCount(try Self.number(name, db))
            let counted = try Self.count(name, db)
            if counted != noted { try Self.set(name, to: counted.databaseValue, db) }
            return counted - noted
        }
    }

    private static func count(_ column: String, _ db: Database) throws -> Int64 {
        let counts = try Int64.fetchCursor(db, sql: "SELECT \(column) FROM generation")
        var counted: Int64 = 0
        while let count = try counts.next() { counted = byteCount(counted + byteCount(count)) }
        return counted
    }

    /// The capacity that was set for this cache directory, in bytes; nil if none was.
    package func capacity() throws -> Int64? { try read { db in try Self.number("capacity", db) } }

    /// Sets the capacity, or takes it away with nil.
    package func setCapacity(_ bytes: Int64?) throws {
        try write { db in try Self.set("capacity", to: bytes?.databaseValue, db) }
    }

    /// The secret from which the keys of all seals are derived; made when first asked for, or for looking at a catalog
    /// that has none, and so no seals, thought up.
    package func sealKey() throws -> SymmetricKey {
        if let stored = try read({ db in try Self.sealKey(db) }) { return stored }
        guard isWritable else { return SymmetricKey(size: .bits256) }
        return try write { db in
            if let stored = try Self.sealKey(db) { return stored }
            let key = SymmetricKey(size: .bits256)
            try Self.set("sealKey", to: key.withUnsafeBytes { Data($0) }.databaseValue, db)
            return key
        }
    }

    private static func sealKey(_ db: Database) throws -> SymmetricKey? {
        let stored: Data? = try setting("sealKey", db)
        return stored.flatMap { $0.count == 32 ? SymmetricKey(data: $0) : nil }
    }

    /// Whether files that no record names may lie about, since a process ended uncleanly or a removal failed.
    func isSweepPending() throws -> Bool { try read { db in try Self.setting("sweepPending", db) ?? false } }

    /// Notes that such files may lie about, or that they are gone.
    func setSweepPending(_ isPending: Bool) throws {
        try write { db in try Self.set("sweepPending", to: isPending ? true.databaseValue : nil, db) }
    }

    /// Notes an unclean end: every generation's file may hold bytes that no block claims, and there may be files that
    /// belong to none.
    func advanceTidyEpoch() throws {
        try write { db in
            var epoch = try Self.number("tidyEpoch", db)
            if epoch == nil {
                // The epoch is unknown, so every file is checked again.
                try db.execute(sql: "UPDATE generation SET tidyEpoch = 0")
                epoch = 0
            }
            try Self.set("tidyEpoch", to: ((epoch ?? 0) + 1).databaseValue, db)
            try Self.set("sweepPending", to: true.databaseValue, db)
        }
    }

    /// Notes that the generation's file holds nothing but what blocks claim.
    func noteTidied(_ generation: Int64) throws {
        try write { db in
            try db.execute(
                sql: """
                    UPDATE generation SET tidyEpoch = (SELECT value FROM setting WHERE name = 'tidyEpoch') WHERE id = ?
                    """,
                arguments: [generation])
        }
    }

    /// A setting that is a number from 0 to ``Block/offsetLimit``. `nil` if it is absent, or if another program has
    /// stored anything else.
    static func number(_ name: String, _ db: Database) throws -> Int64? {
        guard let value: DatabaseValue = try setting(name, db), case .int64(let number) = value.storage else {
            return nil
        }
        return (0...Block.offsetLimit).contains(number) ? number : nil
    }

    /// The recorded times for the maximum age.
    func ageRecord() throws -> AgeStart.Record {
        try read { db in
            // A damaged value counts as absent, because the dates of use are compared as well.
            func date(_ name: String) throws -> Date? {
                guard let value: DatabaseValue = try Self.setting(name, db), case .int64(let number) = value.storage
                else { return nil }
                return Date(microseconds: number)
            }
            return AgeStart.Record(start: try date("ageStart"), seen: try date("lastSeen"))
        }
    }

    /// Records the times for the maximum age.
    func setAgeRecord(_ record: AgeStart.Record) throws {
        try write { db in
            try Self.set("ageStart", to: record.start?.microseconds.databaseValue, db)
            try Self.set("lastSeen", to: record.seen?.microseconds.databaseValue, db)
        }
    }

    static func setting<Value: DatabaseValueConvertible>(_ name: String, _ db: Database) throws -> Value? {
        try Value.fetchOne(db, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name])
    }

    static func set(_ name: String, to value: DatabaseValue?, _ db: Database) throws {
        if let value {
            try db.execute(
                sql: """
                    INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
                    """,
                arguments: [name, value])
        } else {
            try db.execute(sql: "DELETE FROM setting WHERE name = ?", arguments: [name])
        }
    }
}
