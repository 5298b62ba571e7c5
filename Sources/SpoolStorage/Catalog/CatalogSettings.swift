import ByteRanges
import Crypto
import Foundation
import GRDB

/// A value type that reads and changes the catalog's `setting` table: the settings of a cache directory.
struct CatalogSettings {
    private let catalog: Catalog

    init(_ catalog: Catalog) { self.catalog = catalog }

    // MARK: - Sums

    /// Returns the number of bytes in all recorded blocks. Every write updates this sum. It is recomputed only if it is
    /// invalid or larger than the capacity.
    ///
    /// - Parameter capacity: The capacity in bytes; `nil` if it is unlimited. If a damaged sum exceeded the capacity,
    ///   the cache would seem permanently full.
    func storedBytes(capacity: Int64? = nil) throws -> Int64 { try sum("storedBytes", capacity) }

    /// Returns the number of bytes that the rows of all versions use, like ``storedBytes(capacity:)``.
    func rowBytes(capacity: Int64? = nil) throws -> Int64 { try sum("rowBytes", capacity) }

    /// Returns the sum of a column of the versions, which is stored under the column's name.
    private func sum(_ name: String, _ capacity: Int64?) throws -> Int64 {
        let stored = try catalog.read { db in try db.number(name) ?? -1 }
        if Catalog.byteCount(stored) == stored, stored <= capacity ?? .max { return stored }
        guard catalog.isWritable else { return try catalog.read { db in try Self.count(name, db) } }
        return try catalog.write { db in
            try catalog.counts.correctImplausible(capacity ?? .max, db)
            // A version can't store more bytes than its length.
            try db.execute(
                sql: """
                    UPDATE generation SET storedBytes = length
                    WHERE typeof(length) = 'integer' AND typeof(storedBytes) = 'integer'
                        AND length >= 0 AND storedBytes > length
                    """)
            let counted = try Self.count(name, db)
            if counted != stored { try db.set(name, to: counted.databaseValue) }
            return counted
        }
    }

    /// Recounts the bytes in all recorded blocks, and stores the sum.
    ///
    /// - Returns: The difference from the previous sum.
    func recountStoredBytes() throws -> Int64 { try recount("storedBytes") }

    /// Recounts the bytes of all rows, and stores the sum.
    ///
    /// - Returns: The difference from the previous sum.
    func recountRowBytes() throws -> Int64 { try recount("rowBytes") }

    private func recount(_ name: String) throws -> Int64 {
        try catalog.write { db in
            let stored = Catalog.byteCount(try db.number(name))
            let counted = try Self.count(name, db)
            if counted != stored { try db.set(name, to: counted.databaseValue) }
            return counted - stored
        }
    }

    static func count(_ column: String, _ db: Database) throws -> Int64 {
        let rows = try Row.fetchCursor(db, sql: "SELECT \(column) FROM generation")
        var counted: Int64 = 0
        while let row = try rows.next() { counted = Catalog.byteCount(counted + row.byteCount(0)) }
        return counted
    }

    // MARK: - Values

    /// Returns the capacity of this cache directory in bytes; `nil` if none was set.
    ///
    /// If the recorded value is invalid, the result is 1 GiB, or the number of stored bytes if it is larger. The cache
    /// then neither grows without limit nor evicts media.
    func capacity() throws -> Int64? {
        let (value, capacity) = try catalog.read { db in (try db.setting("capacity"), try db.number("capacity")) }
        guard let value, !value.isNull, capacity == nil else { return capacity }
        if case .int64(Block.offsetLimit...) = value.storage { return Block.offsetLimit }
        return try max(CacheCapacity.standardByteCount, storedBytes() + rowBytes())
    }

    /// Sets the capacity, or removes it if it is `nil`. A number larger than 2^53 is recorded as 2^53.
    func setCapacity(_ bytes: Int64?) throws {
        let recorded = bytes.map { min($0, Block.offsetLimit) }
        try catalog.write { db in try db.set("capacity", to: recorded?.databaseValue) }
    }

    /// Returns the secret from which the keys of all checksums are derived. It is created when it is first used. A
    /// read-only catalog without a secret does not contain checksums, so a random secret is returned.
    func sealKey() throws -> SymmetricKey {
        if let stored = try catalog.read({ db in try Self.sealKey(db) }) { return stored }
        guard catalog.isWritable else { return SymmetricKey(size: .bits256) }
        return try catalog.write { db in
            if let stored = try Self.sealKey(db) { return stored }
            let key = SymmetricKey(size: .bits256)
            try db.set("sealKey", to: key.withUnsafeBytes { Data($0) }.databaseValue)
            return key
        }
    }

    private static func sealKey(_ db: Database) throws -> SymmetricKey? {
        // If the stored key has the wrong type, no checksum is valid, and the media is fetched again.
        guard case .blob(let data) = try db.setting("sealKey")?.storage, data.count == 32 else { return nil }
        return SymmetricKey(data: data)
    }

    /// Returns whether there may be files without a record, because a process ended uncleanly or a removal failed.
    func isSweepPending() throws -> Bool {
        try catalog.read { db in
            guard let value = try db.setting("sweepPending") else { return false }
            // A value of the wrong type may have been 1.
            return if case .int64(0) = value.storage { false } else { true }
        }
    }

    /// Records whether there may be files without a record.
    func setSweepPending(_ isPending: Bool) throws {
        try catalog.write { db in try db.set("sweepPending", to: isPending ? true.databaseValue : nil) }
    }

    /// Returns whether the number of unclean shutdowns can't be read, in which case no version can be recorded.
    func isTidyEpochLost() throws -> Bool { try catalog.read { db in try db.number("tidyEpoch") == nil } }

    /// Returns whether rows can't be added, because another program has changed a row number to the largest possible
    /// number.
    func areRowNumbersUsedUp() throws -> Bool {
        let limit = Self.rowNumberLimit
        let rows = Self.numberedTables.map { "EXISTS (SELECT 1 FROM \($0) WHERE id > \(limit))" }
        let numbers = "EXISTS (SELECT 1 FROM sqlite_sequence WHERE typeof(seq) <> 'integer' OR seq > \(limit))"
        let sql = "SELECT " + (rows + [numbers]).joined(separator: " OR ")
        return try catalog.read { db in try Bool.fetchOne(db, sql: sql) ?? false }
    }

    /// Removes rows whose numbers another program has changed to the largest possible number, so that rows can be added
    /// again. Their media files are removed by the next sweep.
    func restoreRowNumbers() throws {
        try catalog.write { db in
            for table in Self.numberedTables {
                try db.execute(sql: "DELETE FROM \(table) WHERE id > \(Self.rowNumberLimit)")
            }
            // Otherwise, rows that refer to a deleted row would belong to the next row that gets its number.
            for sql in [
                "DELETE FROM generation WHERE resource NOT IN (SELECT id FROM resource)",
                "DELETE FROM block WHERE generation NOT IN (SELECT id FROM generation)",
                "DELETE FROM variant WHERE generation NOT IN (SELECT id FROM generation)",
                "UPDATE resource SET presentation = NULL WHERE presentation NOT IN (SELECT id FROM resource)",
            ] { try db.execute(sql: sql) }
            for table in Self.numberedTables {
                try db.execute(
                    sql: """
                        UPDATE sqlite_sequence SET seq = (SELECT coalesce(max(id), 0) FROM \(table)) WHERE name = ?
                        """, arguments: [table])
            }
            try db.set("sweepPending", to: true.databaseValue)
        }
    }

    /// The largest row number that a cache can reach.
    private static let rowNumberLimit: Int64 = 1 << 62
    /// The tables whose row numbers are assigned by SQLite.
    private static let numberedTables = ["resource", "generation", "download"]

    /// Records an unclean shutdown: there may be files without a record, and each file may contain bytes that no block
    /// claims.
    func advanceTidyEpoch() throws {
        try catalog.write { db in
            var epoch = try db.number("tidyEpoch")
            if epoch == nil {
                // The epoch is unknown, so every file is checked again.
                try db.execute(sql: "UPDATE generation SET tidyEpoch = 0")
                epoch = 0
            }
            try db.set("tidyEpoch", to: ((epoch ?? 0) + 1).databaseValue)
            try db.set("sweepPending", to: true.databaseValue)
        }
    }

    /// Records that a version's file contains only bytes claimed by blocks.
    func recordCleanedUp(_ generation: Int64) throws {
        try catalog.write { db in
            try db.execute(
                sql: """
                    UPDATE generation SET tidyEpoch = (SELECT value FROM setting WHERE name = 'tidyEpoch') WHERE id = ?
                    """,
                arguments: [generation])
        }
    }

    /// Returns the recorded times for the maximum age.
    func ageRecord() throws -> AgeStart.Record {
        try catalog.read { db in
            // A damaged value counts as absent, because the dates of use are compared as well.
            func date(_ name: String) throws -> Date? {
                guard case .int64(let number) = try db.setting(name)?.storage else { return nil }
                return Date(microseconds: number)
            }
            return AgeStart.Record(start: try date("ageStart"), seen: try date("lastSeen"))
        }
    }

    /// Records the times for the maximum age.
    func setAgeRecord(_ record: AgeStart.Record) throws {
        try catalog.write { db in
            try db.set("ageStart", to: record.start?.microseconds.databaseValue)
            try db.set("lastSeen", to: record.seen?.microseconds.databaseValue)
        }
    }
}

extension Database {
    /// Returns a setting that is a number from 0 to ``Block/offsetLimit``; `nil` if it is absent, or if another program
    /// has stored a different value.
    func number(_ name: String) throws -> Int64? {
        guard case .int64(let number) = try setting(name)?.storage else { return nil }
        return (0...Block.offsetLimit).contains(number) ? number : nil
    }

    /// Returns a setting of any type; `nil` if it is absent.
    func setting(_ name: String) throws -> DatabaseValue? {
        try DatabaseValue.fetchOne(self, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name])
    }

    /// Changes a setting, or removes it if the value is `nil`.
    func set(_ name: String, to value: DatabaseValue?) throws {
        if let value {
            try execute(
                sql: """
                    INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
                    """,
                arguments: [name, value])
        } else {
            try execute(sql: "DELETE FROM setting WHERE name = ?", arguments: [name])
        }
    }
}

/// The time from which the maximum age is counted. This type does not perform I/O.
///
/// A sudden change of the wall clock restarts all ages, because dates before it can't be compared with dates after it.
/// A clock that is briefly years ahead therefore does not cause evictions. The same applies to a clock that starts in
/// 1970 and is corrected later.
struct AgeStart: Sendable {
    /// The maximum difference between the wall clock and the elapsed time, in seconds. A larger difference counts as a
    /// sudden change of the clock.
    private static let tolerance: TimeInterval = 60

    /// The times that the catalog stores.
    struct Record: Sendable, Hashable {
        /// The time of the last sudden change forward; `nil` if there was none.
        var start: Date?
        /// The time when Spool last read the wall clock.
        var seen: Date?
    }

    /// The times to store in the catalog.
    private(set) var record: Record
    private let age: TimeInterval
    private var last: (now: Date, elapsed: Duration)

    /// Creates the value, and compares the wall clock with the times that were recorded before the catalog was opened.
    ///
    /// If all of them are older than `age`, either the cache was closed for that long or the clock is wrong. Spool
    /// can't determine which, so ages restart.
    ///
    /// - Parameters:
    ///   - record: The times that the catalog stores.
    ///   - newestUse: The newest date of use in the catalog; `nil` if nothing is stored.
    ///   - age: The maximum age.
    init(_ record: Record, newestUse: Date?, age: Duration, now: Date, elapsed: Duration) {
        self.record = record
        self.age = age / .seconds(1)
        last = (now, elapsed)
        let newest = [record.seen, newestUse].compactMap { $0 }.max()
        if let newest, now.timeIntervalSince(newest) > self.age { self.record.start = now }
        _ = pass(now: now, elapsed: elapsed)
    }

    /// Compares the wall clock with the time that has elapsed since the last call.
    ///
    /// - Returns: Whether ages restart.
    mutating func pass(now: Date, elapsed: Duration) -> Bool {
        let jump = now.timeIntervalSince(last.now) - (elapsed - last.elapsed) / .seconds(1)
        last = (now, elapsed)
        // If the clock was set back, no date is too old, and ages restart when the clock is corrected. A start in the
        // future was recorded while the clock was ahead.
        let restarts = jump > Self.tolerance || record.start.map { $0 > now } ?? false
        if restarts { record.start = now }
        record.seen = now
        return restarts
    }

    /// The date before which the last use of media is too old; `nil` if no media can be too old.
    var oldest: Date? {
        let oldest = last.now.addingTimeInterval(-age)
        return record.start.map { $0 > oldest } ?? false ? nil : oldest
    }
}
