import Foundation
import GRDB

/// Changes of the catalog that come about together or not at all; see ``Catalog/transaction(_:)``.
package struct CatalogTransaction {
    let db: Database
    let catalog: Catalog

    var cipher: CatalogCipher { catalog.cipher }
}

extension Catalog {
    /// Runs `body` alone among all writers, and keeps its changes if it returns.
    ///
    /// - Parameters:
    ///   - committed: Called when the changes are kept, before any other writer comes.
    ///   - failed: Called when they are not, before any other writer comes.
    package func transaction<R>(
        _ body: (CatalogTransaction) throws -> R, committed: (R) -> Void = { _ in }, failed: () -> Void = {}
    ) throws -> R {
        try writeAlone { db in
            var result: R?
            do {
                try db.inTransaction(.immediate) {
                    result = try body(CatalogTransaction(db: db, catalog: self))
                    return .commit
                }
            } catch {
                failed()
                throw error
            }
            guard let result else { throw CacheError(.storage, "“\(path)” lost a transaction") }
            committed(result)
            return result
        }
    }
}
