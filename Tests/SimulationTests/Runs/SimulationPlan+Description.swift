import SpoolTesting

/// A one-line description of a plan, for logs.
extension SimulationPlan: CustomStringConvertible {
    var description: String {
        let media = media.map { media in
            var text = "\(media.path) \(media.versions.map(\.length)) latency \(media.latency) pace \(media.pace)"
            if !media.hasRanges { text += " without ranges" }
            if !media.statesLength { text += " without length" }
            if let place = media.truncationOffset { text += " fails at \(place)" }
            if let control = media.cacheControl { text += " \(control)" }
            if media.isPersonal { text += " by user" }
            if media.hasLanguages { text += " by language" }
            return text
        }
        let lives = lives.map { life in
            "\(life.ending)\(life.isKilled ? " at call \(life.killAt)" : ""), \(life.players) players, \(life.chores) chores"
        }
        return """
            seed \(seed): \(media); capacity \(capacity.map(String.init) ?? "none"), \(freshness), \(faults), \
            disk faults 1/\(diskFaults), catalog faults 1/\(catalogFaults), damages \(damages) \(damagesCatalog), holes \(punchesHoles), \
            removal faults 1/\(removalFaults), maximum age \(maximumAge.map { "\($0)" } ?? "none"), \
            refuses \(refusesSome), preloads \(preloads), chores \(chores.map(\.rawValue)), lives \(lives)
            """
    }
}
