/// The tables of what is to be kept offline; a migration by a name of its own.
extension CatalogSchema {
    /// `download`: a media file of a named set. It is pinned as long as any set has it: `resource.pinned` is what eviction
    /// goes by. `url` is what people are shown, `source` the whole address to go on from after a restart; null where it
    /// must not be kept, and has to be handed again. `handPin`: keys that a set has and that are pinned for themselves,
    /// too, so that they stay pinned when the last set lets go of them.
    static let downloads = """
        CREATE TABLE download (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            collection TEXT NOT NULL,
            key TEXT NOT NULL,
            url TEXT NOT NULL,
            source TEXT,
            UNIQUE (collection, key)
        );
        CREATE INDEX downloadByKey ON download (key);

        CREATE TABLE handPin (
            key TEXT NOT NULL PRIMARY KEY
        ) WITHOUT ROWID;
        CREATE TRIGGER resourceGone AFTER DELETE ON resource WHEN OLD.pinned = 1 BEGIN
            DELETE FROM handPin WHERE key = OLD.key;
        END;
        """

    static let downloadColumns = ["download": "id, collection, key, url, source", "handPin": "key"]
}
